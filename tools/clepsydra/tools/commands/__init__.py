"""The commands, one module for each or for a few that are alike. A command `x` is the function `x_command`."""
