"""The drop-in: every module and name of the published package, served by tfrio."""

from __future__ import annotations

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.compat.bytes_of import write_numbers

NAMES = {
    "tfrecord": "TFRecordWriter tfrecord_iterator example_loader sequence_loader tfrecord_loader "
    "multi_tfrecord_loader process_feature extract_feature_dict cycle sample_iterators "
    "shuffle_iterator reader writer iterator_utils example_pb2 tools torch",
    "tfrecord.reader": "tfrecord_iterator example_loader sequence_loader tfrecord_loader "
    "multi_tfrecord_loader process_feature extract_feature_dict",
    "tfrecord.writer": "TFRecordWriter",
    "tfrecord.iterator_utils": "cycle sample_iterators shuffle_iterator",
    "tfrecord.example_pb2": "BytesList FloatList Int64List Feature Features FeatureList "
    "FeatureLists Example SequenceExample DESCRIPTOR",
    "tfrecord.tools": "create_index tfrecord2idx",
    "tfrecord.tools.tfrecord2idx": "create_index create_indices main",
    "tfrecord.torch": "TFRecordDataset MultiTFRecordDataset dataset",
    "tfrecord.torch.dataset": "TFRecordDataset MultiTFRecordDataset",
}


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_served_by_tfrio(dropin, module):
    served = importlib.import_module(module)
    ours = importlib.import_module(module.replace("tfrecord", "tfrio.compat", 1))
    assert served.__file__.startswith(str(dropin))
    for name in NAMES[module].split():
        there, here = getattr(served, name), getattr(ours, name)
        assert there is here or there.__name__.split(".")[-1] == here.__name__.split(".")[-1]
    assert set(served.__all__) <= {*NAMES[module].split()}


def test_importing_it_imports_neither_torch_nor_protobuf(dropin):
    code = (
        "import sys, tfrecord\n"
        "assert not {'torch', 'google.protobuf'} & set(sys.modules)\n"
        "from tfrecord import *\n"
        "tfrecord_loader, TFRecordWriter\n"
        "assert tfrecord.torch.dataset.TFRecordDataset and tfrecord.example_pb2.Example"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_torch_there_is_no_attribute_and_no_module(dropin):
    code = (
        "import sys\n"
        "sys.modules['torch'] = None\n"
        "import tfrecord\n"
        "assert not hasattr(tfrecord, 'torch')\n"
        "try:\n    import tfrecord.torch\n"
        "except ModuleNotFoundError as error:\n    assert error.name == 'torch', error\n"
        "else:\n    raise SystemExit('imported')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_command_as_a_module(dropin, tmp_path):
    for name in ("a", "b"):
        write_numbers(tmp_path / f"{name}.tfrecord", 2)
    run = [sys.executable, "-W", "error", "-m", "tfrecord.tools.tfrecord2idx"]
    subprocess.run([*run, tmp_path / "a.tfrecord", tmp_path / "i"], check=True, timeout=60)
    subprocess.run([*run, tmp_path], check=True, timeout=60)
    for index in ("i", "a.tfindex", "b.tfindex"):
        assert (tmp_path / index).read_text() == "0 30\n30 30\n"


def test_the_command_is_an_entry_point(dropin):
    project = tomllib.loads((Path(dropin).parent / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    module, _, function = project["scripts"]["tfrecord2idx"].partition(":")
    assert callable(getattr(importlib.import_module(module), function))


def test_an_unknown_name_is_an_attribute_error(dropin):
    tfrecord = importlib.import_module("tfrecord")
    with pytest.raises(AttributeError, match="nothing"):
        _ = tfrecord.nothing
