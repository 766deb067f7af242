"""An address on which the processes of one supervisor listen together."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from clepsydra.tools.exits import Exit, Failure


@contextmanager
def shared_address(listen: str) -> Iterator[str]:
    """Reserve an address for processes that will listen on it with SO_REUSEPORT. Yields it, with the chosen port."""
    from clepsydra.scheduler.api.listening import CannotListen, cannot_listen, check_address

    host, _, port = listen.rpartition(":")
    if not hasattr(socket, "SO_REUSEPORT"):
        raise Failure("this system has no SO_REUSEPORT, so scheduler.processes must be 1", Exit.USAGE)
    try:
        # Fails if another process listens there, even one that shares its port.
        check_address(listen)
        [(family, kind, protocol, _, address), *_] = socket.getaddrinfo(
            host.strip("[]"), int(port), type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        with socket.socket(family, kind, protocol) as reserved:
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            reserved.bind(address)
            yield f"{host}:{reserved.getsockname()[1]}"
    except CannotListen as error:
        raise Failure(str(error), Exit.UNAVAILABLE) from error
    except OSError as error:
        raise Failure(str(cannot_listen(listen, error)), Exit.UNAVAILABLE) from error
