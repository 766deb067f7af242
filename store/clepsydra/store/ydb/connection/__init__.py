"""The way to the server: the driver, who the store is to the server, sessions, and what an error of the SDK means."""
