"""The gRPC service that back ends call to create, change and remove scheduled actions."""
