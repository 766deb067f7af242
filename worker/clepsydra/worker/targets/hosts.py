"""How many requests each host may have at once, so that one that is slow or silent leaves room for the others."""

from functools import lru_cache
from urllib.parse import urlsplit

from clepsydra.worker.capacity import Capacity, Needs
from clepsydra.worker.settings import WorkerSettings

# Hosts that have nothing in flight are forgotten when there are more than this.
_REMEMBERED = 4096
_PORTS = {"http": 80, "https": 443}


class Hosts:
    def __init__(self, settings: WorkerSettings, capacity: Capacity) -> None:
        self._limit = settings.http_connections_per_host
        self._capacity = capacity
        self._connections = capacity.resource(settings.http_connections, capacity.places)
        self._needs: dict[str, Needs] = {}

    def needs(self, url: str) -> Needs:
        host = host_of(url)
        needs = self._needs.get(host)
        if needs is None:
            if len(self._needs) >= _REMEMBERED:
                self._forget_idle()
            own = self._capacity.resource(self._limit, self._connections)
            needs = self._needs[host] = Needs(self._connections, own)
        return needs

    def _forget_idle(self) -> None:
        self._needs = {host: needs for host, needs in self._needs.items() if needs.is_taken()}


@lru_cache(_REMEMBERED)
def host_of(url: str) -> str:
    """The host and port that a request to this URL goes to.

    >>> host_of("https://API.example.org/v1/charge?id=7")
    'api.example.org:443'
    """
    try:
        parts = urlsplit(url)
        return f"{parts.hostname or ''}:{parts.port or _PORTS.get(parts.scheme, 0)}"
    except ValueError:
        # It will fail without a connection.
        return ""
