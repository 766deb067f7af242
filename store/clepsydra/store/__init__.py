"""The port to a store, and one folder per backend."""
