"""The gRPC services of YDB that the SDK calls."""
