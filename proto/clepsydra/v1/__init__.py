"""The messages and the service of version 1."""
