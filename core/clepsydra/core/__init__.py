"""The heart: what messages mean, without any I/O, clock or randomness that was not passed in."""
