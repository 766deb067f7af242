"""A schema for each test, on the server that all tests share."""

import uuid
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from tests.postgres.shared import server_url


class Installation:
    """A place for an installation: a schema with a unique name, which does not exist yet."""

    def __init__(self, server: str | None = None) -> None:
        self.schema = f"test_{uuid.uuid4().hex}"
        self.server = server or server_url()
        self.url = self.through(self.server)

    def through(self, server: str) -> str:
        """The installation's URL, with another way to its server. Its sessions are named after the schema."""
        return f"{server}{'&' if '?' in server else '?'}schema={self.schema}&application_name={self.schema}"

    def as_user(self, name: str, password: str) -> str:
        """The URL for another user of the server."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=f"{name}:{password}@{parts.netloc.rpartition('@')[2]}"))

    def in_database(self, name: str) -> str:
        """The URL for another database of the server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    async def connect(self) -> asyncpg.Connection:
        """A connection like that of an operator or an application."""
        return await asyncpg.connect(self.server)

    async def drop(self) -> None:
        connection = await self.connect()
        try:
            await connection.execute("SET client_min_messages = warning")
            await connection.execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")
        finally:
            await connection.close()
