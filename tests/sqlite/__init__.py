"""What is SQLite's alone; what every store does is in tests/conformance."""
