"""What type checkers make of the public API; `make types` checks every `assert_type`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_type

import tfrio
from tfrio.examples.columns import Batch
from tfrio.examples.repair import RepairReport
from tfrio.geo.assemble_report import ImportReport
from tfrio.geo.report import ExportReport
from tfrio.records.damage import Damage
from tfrio.tables.export import TableExportReport


def reading() -> None:
    assert_type(tfrio.read("a"), Iterator[dict[str, Any]])
    assert_type(tfrio.read_batches("a", 3), Iterator[Batch])
    assert_type(tfrio.read_records("a"), Iterator[bytes])
    assert_type(tfrio.read_records("a", errors="return"), Iterator[bytes | Damage])
    assert_type(tfrio.open("a")[3], dict[str, Any])
    assert_type(len(tfrio.RecordSequence("a")), int)


def looking() -> None:
    assert_type(tfrio.info(["a", "b"]), tfrio.InfoReport)
    assert_type(tfrio.verify("a").ok, bool)
    assert_type(tfrio.repair("a", "b"), RepairReport)
    assert_type(tfrio.infer_schema("a"), tfrio.Schema)
    assert_type(tfrio.infer_schema("a")["x"], tfrio.Feature)


def writing() -> None:
    with tfrio.Writer("a") as writer:
        assert_type(writer, tfrio.Writer)
        writer.write({"x": 1})


def rooms() -> None:
    assert_type(tfrio.geo.export_image("a", "b", patch=(3, 4)), ExportReport)
    assert_type(tfrio.geo.import_image("a", "b", mixer="c"), ImportReport)
    assert_type(tfrio.tables.export_table("a", "b"), TableExportReport)
