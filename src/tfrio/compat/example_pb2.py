"""The protobuf classes of ``tf.train.Example``, for code that parses records by hand.

The classes live in a descriptor pool of their own. Nothing is registered in protobuf's default
pool, so this module and TensorFlow (or anything else that brings ``tensorflow.Example``) can be
imported into one process in either order. Nothing else in this package needs protobuf.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

__all__ = [
    "DESCRIPTOR",
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]

_PACKAGE = "tensorflow"
_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {"bytes": _Field.TYPE_BYTES, "float": _Field.TYPE_FLOAT, "int64": _Field.TYPE_INT64}

# Message -> fields as (name, number, type, repeated). The numbers are those of TensorFlow's
# tensorflow/core/example/{example,feature}.proto.
_MESSAGES: dict[str, tuple[tuple[str, int, str, bool], ...]] = {
    "BytesList": (("value", 1, "bytes", True),),
    "FloatList": (("value", 1, "float", True),),
    "Int64List": (("value", 1, "int64", True),),
    "Feature": (
        ("bytes_list", 1, "BytesList", False),
        ("float_list", 2, "FloatList", False),
        ("int64_list", 3, "Int64List", False),
    ),
    "Features": (("feature", 1, "Features.FeatureEntry", True),),
    "FeatureList": (("feature", 1, "Feature", True),),
    "FeatureLists": (("feature_list", 1, "FeatureLists.FeatureListEntry", True),),
    "Example": (("features", 1, "Features", False),),
    "SequenceExample": (
        ("context", 1, "Features", False),
        ("feature_lists", 2, "FeatureLists", False),
    ),
}
_MAPS = {
    "Features": ("FeatureEntry", "Feature"),
    "FeatureLists": ("FeatureListEntry", "FeatureList"),
}


def _add_field(
    message: descriptor_pb2.DescriptorProto, name: str, number: int, kind: str, repeated: bool
) -> descriptor_pb2.FieldDescriptorProto:
    field = message.field.add(name=name, number=number)
    field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
    if kind in _TYPES:
        field.type = _TYPES[kind]
    else:
        field.type = _Field.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    if kind in ("float", "int64"):
        field.options.packed = True
    return field


def _add_map(message: descriptor_pb2.DescriptorProto, entry: str, value: str) -> None:
    nested = message.nested_type.add(name=entry)
    nested.options.map_entry = True
    key = nested.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL)
    key.type = _Field.TYPE_STRING
    _add_field(nested, "value", 2, value, repeated=False)


def _file() -> descriptor_pb2.FileDescriptorProto:
    """Describe all messages as one proto file, ``example.proto``."""
    proto = descriptor_pb2.FileDescriptorProto(
        name="example.proto", package=_PACKAGE, syntax="proto3"
    )
    for name, fields in _MESSAGES.items():
        message = proto.message_type.add(name=name)
        for field in fields:
            _add_field(message, *field)
        if name == "Feature":
            message.oneof_decl.add(name="kind")
            for alternative in message.field:
                alternative.oneof_index = 0
        if name in _MAPS:
            _add_map(message, *_MAPS[name])
    return proto


_POOL = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(_file().SerializeToString())
DESCRIPTOR = _POOL.FindFileByName("example.proto")


def _message(name: str) -> Any:
    """Make the class of one message; the module is set so that messages pickle."""
    made = message_factory.GetMessageClass(_POOL.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    made.__module__ = __name__
    return made


BytesList = _message("BytesList")
FloatList = _message("FloatList")
Int64List = _message("Int64List")
Feature = _message("Feature")
Features = _message("Features")
FeatureList = _message("FeatureList")
FeatureLists = _message("FeatureLists")
Example = _message("Example")
SequenceExample = _message("SequenceExample")
