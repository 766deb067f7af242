"""Clepsydra beside its peers: the same work on each, on the same machine, in the same run. See __main__.py."""
