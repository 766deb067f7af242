"""The gRPC edge: server, endpoint, status codes, pages and encoded responses."""
