"""Connections to the file: how they are opened, which thread uses them, and how their work is committed."""
