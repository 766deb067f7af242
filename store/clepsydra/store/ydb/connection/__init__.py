"""The connection to the server: driver, credentials, sessions, and the meaning of the SDK's errors."""
