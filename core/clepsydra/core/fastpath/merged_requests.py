"""Messages that a batch of creations is parsed into, to recognise it and to read it column by column.

Concatenated protobuf messages merge, so a message in which `requests` is not repeated merges all requests of a batch.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf import duration_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from clepsydra.v1.action_pb2 import Meta, PythonHandler, Schedule, ScheduledAction, Spec
from clepsydra.v1.scheduler_pb2 import BatchCreateActionsRequest, CreateActionRequest

# The fields of a message that are wanted, each with the fields that are wanted of it. A field without any is a text, a
# number, or a message that is wanted as it is encoded.
_Wanted = Mapping[str, "_Wanted"]


def _merged_message(kind: Any, wanted: _Wanted) -> DescriptorProto:
    """The message that all messages of this kind merge into: each wanted value is repeated."""
    merged = DescriptorProto(name=kind.name)
    for name, within in wanted.items():
        field = kind.fields_by_name[name]
        column = merged.field.add(name=name, number=field.number)
        if within:
            merged.nested_type.append(_merged_message(field.message_type, within))
            column.type, column.type_name = FieldDescriptorProto.TYPE_MESSAGE, merged.nested_type[-1].name
            column.label = FieldDescriptorProto.LABEL_OPTIONAL
        else:
            column.type = FieldDescriptorProto.TYPE_BYTES if field.message_type else field.type
            column.label = FieldDescriptorProto.LABEL_REPEATED
    return merged


def _merged_class(wanted: _Wanted) -> Any:
    file = FileDescriptorProto(name="columns.proto", package="clepsydra.columns", syntax="proto3")
    file.message_type.append(_merged_message(BatchCreateActionsRequest.DESCRIPTOR, wanted))
    pool: Any = DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"{file.package}.{file.message_type[0].name}"))


# All values of the requests of a batch, as lists; labels and delays as they are encoded.
VALUES = _merged_class(
    {
        "requests": {
            "request_id": {},
            "action": {
                "meta": {"id": {}, "labels": {}},
                "spec": {
                    "schedule": {"start_time": {"seconds": {}, "nanos": {}}, "delay": {}},
                    "handler": {"name": {}, "payload": {}, "content_type": {}},
                },
            },
        }
    }
)
# The start times and handlers of the requests of a batch, as they are encoded.
WHOLE = _merged_class({"requests": {"action": {"spec": {"schedule": {"start_time": {}}, "handler": {}}}}})

# All fields of the common kind.
_COMMON_FIELDS: dict[Any, set[str]] = {
    BatchCreateActionsRequest: {"requests"},
    CreateActionRequest: {"action", "request_id"},
    ScheduledAction: {"meta", "spec"},
    Meta: {"id", "labels"},
    Spec: {"schedule", "handler"},
    Schedule: {"start_time", "delay"},
    PythonHandler: {"name", "payload", "content_type"},
}


def _common_class() -> Any:
    """The messages of a batch without all other fields, as if all its requests were one."""
    file = FileDescriptorProto(name="common.proto", package=BatchCreateActionsRequest.DESCRIPTOR.file.package)
    file.syntax = "proto3"
    pool: Any = DescriptorPool()
    for known in (timestamp_pb2.DESCRIPTOR, duration_pb2.DESCRIPTOR):
        pool.AddSerializedFile(known.serialized_pb)
        file.dependency.append(known.name)
    for kind, names in _COMMON_FIELDS.items():
        described = file.message_type.add()
        kind.DESCRIPTOR.CopyToProto(described)
        fields = [field for field in described.field if field.name in names]
        del described.field[:], described.oneof_decl[:]
        for field in fields:
            field.ClearField("oneof_index")
            if field.name == "requests":
                field.label = FieldDescriptorProto.LABEL_OPTIONAL
            described.field.append(field)
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(BatchCreateActionsRequest.DESCRIPTOR.full_name))


_COMMON = _common_class()


def are_common(encoded: bytes) -> bool:
    """Whether the requests of an encoded batch have no other fields than those of the common kind.

    Merged into one request, each common field keeps one value, but of other fields nothing is lost.
    """
    try:
        merged = _COMMON.FromString(encoded)
    except DecodeError:
        # Unknown fields can be nested too deeply for another parse.
        return False
    size = merged.ByteSize()
    merged.DiscardUnknownFields()
    return bool(merged.ByteSize() == size)
