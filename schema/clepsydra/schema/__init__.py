"""The tables of each backend, as numbered DDL files."""
