"""Server processes: signals, logs, the scheduler and the worker inside a process, and a supervisor of processes."""
