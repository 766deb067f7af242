"""Signals for the whole test session: every child process must start as it would start from a terminal.

A child inherits ignored signals. `nohup` and background jobs of a shell ignore SIGINT, and a command that is stopped
by Ctrl-C would then never stop. pytest loads this file in its own process and in each worker of xdist.
"""

import signal


def pytest_configure() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
