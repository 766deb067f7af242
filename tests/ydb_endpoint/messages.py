"""The generated protobuf and gRPC code that the `ydb` package ships.

The SDK chooses one of several copies by the version of protobuf. Type checkers cannot follow that: hence `Any`.
"""

from importlib import import_module
from typing import Any

import ydb  # noqa: F401 - the SDK must be imported first, because it chooses the copy


def _generated(name: str) -> Any:
    return import_module(f"ydb._grpc.common.{name}")


any_pb2: Any = import_module("google.protobuf.any_pb2")
auth_grpc = _generated("ydb_auth_v1_pb2_grpc")
auth_pb2 = _generated("protos.ydb_auth_pb2")
discovery_grpc = _generated("ydb_discovery_v1_pb2_grpc")
discovery_pb2 = _generated("protos.ydb_discovery_pb2")
issue_pb2 = _generated("protos.ydb_issue_message_pb2")
operation_pb2 = _generated("protos.ydb_operation_pb2")
query_grpc = _generated("ydb_query_v1_pb2_grpc")
query_pb2 = _generated("protos.ydb_query_pb2")
scheme_grpc = _generated("ydb_scheme_v1_pb2_grpc")
scheme_pb2 = _generated("protos.ydb_scheme_pb2")
value_pb2 = _generated("protos.ydb_value_pb2")
