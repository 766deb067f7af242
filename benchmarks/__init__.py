"""Programs that measure. Every figure in docs/performance.md names the command that reproduces it."""
