"""A YDB endpoint for tests: real gRPC, the real SDK in front of it, and an engine of a few hundred lines behind it.

It is not YDB. It speaks YDB's protocol with the servicers that the `ydb` package ships, and executes for real the small
part of YQL that this project uses; whatever else it is asked, it refuses. It is as strict about types as YDB, keeps
snapshots consistent, aborts a serializable transaction whose reads were overtaken, and fails on request in all the ways
in which a distributed database fails. What it cannot show is how YDB plans and performs: for that there is
`make test-ydb`, which runs the same tests on a real server.
"""

from tests.ydb_endpoint.endpoint import Endpoint
from tests.ydb_endpoint.engine import Engine
from tests.ydb_endpoint.execution import Evaluation

__all__ = ["Endpoint", "Engine", "Evaluation"]
