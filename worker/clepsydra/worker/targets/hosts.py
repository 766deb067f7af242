"""How many requests each host may have at once, so that one that fails or is silent leaves room for the others.

A host is a name and a port. It starts with the limit of the settings. While its requests fail or run into their
timeouts, the limit is halved, once for all requests that were under way together, down to one; if none of them was
answered, it is one at once. Each answer raises it by one again (additive increase, multiplicative decrease, as TCP
does it). Rows beyond the limit wait unbegun: nothing is spent on a host that cannot answer.

Hosts that have not answered yet, or no more, share half of all connections: however many they are, the others find
connections.
"""

from functools import lru_cache
from urllib.parse import urlsplit

from structlog.typing import FilteringBoundLogger

from clepsydra.worker.capacity import Capacity, Needs, Resource
from clepsydra.worker.settings import WorkerSettings
from clepsydra.worker.tally import Tally

# Hosts that have nothing in flight and are not limited are forgotten when there are more than this.
_REMEMBERED = 4096
_PORTS = {"http": 80, "https": 443}
# One failure among many is not worth a line in the log; a limit below this part of the full one is.
_WORTH_A_LINE = 4


class Host:
    """What a worker knows of one host."""

    def __init__(self, name: str, own: Resource, connections: Resource, unanswered: Resource) -> None:
        self.name = name
        self.own = own
        self.limit_max = own.limit
        self.needs = Needs(connections, unanswered, own)
        self._connections = connections
        self._unanswered = unanswered
        self.answers = False
        # Requests that started before the limit was last lowered say nothing new.
        self.round = 0
        self._answered_in_round = False
        self.is_logged = False

    def answered(self) -> None:
        """It can answer; whether it does so well is another matter."""
        if not self.answers:
            self.answers = True
            self._unanswered.give_back(self.own.taken)
            self.needs.exchange(self._connections, self.own)

    def raise_limit(self) -> None:
        self._answered_in_round = True
        if self.own.limit < self.limit_max:
            self.own.limit += 1

    def lower_limit(self, started_in_round: int) -> bool:
        """A request failed that was started in this round. True: the limit was lowered."""
        if started_in_round < self.round:
            return False
        self.own.limit = max(1, self.own.limit // 2) if self._answered_in_round else 1
        self.round += 1
        self._answered_in_round = False
        return True

    def is_silent(self) -> None:
        if self.answers and self.own.limit == 1:
            self.answers = False
            self._unanswered.take(self.own.taken)
            self.needs.exchange(self._connections, self._unanswered, self.own)

    def is_idle(self) -> bool:
        return not self.own.taken and not self.needs.listeners and self.own.limit == self.limit_max


class Hosts:
    def __init__(self, settings: WorkerSettings, capacity: Capacity, tally: Tally, log: FilteringBoundLogger) -> None:
        self._limit = settings.http_connections_per_host
        self._capacity = capacity
        self._connections = capacity.resource(settings.http_connections, capacity.places)
        self._unanswered = capacity.resource(max(1, settings.http_connections // 2), self._connections)
        self._tally = tally
        self._log = log
        self._hosts: dict[str, Host] = {}

    def of(self, url: str) -> Host:
        name = host_of(url)
        host = self._hosts.get(name)
        if host is None:
            if len(self._hosts) >= _REMEMBERED:
                self._hosts = {name: host for name, host in self._hosts.items() if not host.is_idle()}
            own = self._capacity.resource(self._limit, self._connections)
            host = self._hosts[name] = Host(name, own, self._connections, self._unanswered)
        return host

    def succeeded(self, host: Host) -> None:
        """It answered, and well."""
        host.answered()
        host.raise_limit()
        if host.is_logged and host.own.limit == host.limit_max:
            host.is_logged = False
            self._tally.recovered_hosts += 1
            self._log.info("a host has recovered: it is no longer limited", host=host.name)

    def failed(self, host: Host, started_in_round: int, error: str, *, has_answered: bool) -> None:
        """Its answer was that it cannot, or there was none."""
        if has_answered:
            host.answered()
        if not host.lower_limit(started_in_round):
            return
        if not has_answered:
            host.is_silent()
        if not host.is_logged and host.own.limit * _WORTH_A_LINE <= host.limit_max:
            host.is_logged = True
            self._tally.limited_hosts += 1
            self._log.warning(
                "a host fails or does not answer: until it recovers, fewer requests are sent at once, and others wait",
                host=host.name,
                requests_at_once=host.own.limit,
                error=error,
            )


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
