"""One program for each tool, in the tool's own language, which does to it what the harness asks. See protocol.py.

They run with the packages of `.installed`, not with ours, so they import nothing of the harness but protocol.py.
"""
