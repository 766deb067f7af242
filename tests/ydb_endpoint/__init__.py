"""A YDB endpoint for tests: real gRPC, with the real SDK in front of it and a small engine behind it.

It is not YDB. It speaks YDB's protocol with the servicers that the `ydb` package ships, executes the small part of YQL
that this project uses, and refuses everything else. It is as strict about types as YDB, keeps snapshots consistent, and
aborts a serializable transaction if another one changed what it had read. On request it fails in all the ways in which
a distributed database fails. It cannot show how YDB plans and performs: `make test-ydb` runs the same tests on a real
server.
"""

from tests.ydb_endpoint.endpoint import Endpoint
from tests.ydb_endpoint.engine import Engine
from tests.ydb_endpoint.runtime.text_run import Evaluation

__all__ = ["Endpoint", "Engine", "Evaluation"]
