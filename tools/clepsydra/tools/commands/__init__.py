"""The commands, in a folder for each section of the help text. The command `x` is the function `x_command`."""
