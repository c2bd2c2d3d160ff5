"""Axes noted beside files go wherever their records go."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrio
from tfrio import Writer, read, read_records
from tfrio.cli.main import main
from tfrio.errors import SchemaError, TfrioWarning
from tfrio.examples.axes import RowAxes
from tfrio.examples.carry import Carried
from tfrio.examples.sidecar import SUFFIX, load_sidecar
from tfrio.records.index import build_index

pytestmark = pytest.mark.filterwarnings("ignore::tfrio.errors.TfrioWarning")

Shape = tuple[int, ...] | None
_SHAPES: list[Shape] = [(2, 3), (3, 2), (4, 3), (6,), (1, 2, 2), (0, 3), None]


class File(NamedTuple):
    """A file to write: the shape of ``x`` in each record, and how."""

    shapes: list[Shape]
    sidecar: bool
    ending: str
    block_size: int


_FILES = st.lists(
    st.builds(
        File,
        st.one_of(
            st.lists(st.sampled_from(_SHAPES), max_size=9),
            st.builds(lambda s, n: [s] * n, st.sampled_from(_SHAPES), st.integers(0, 9)),
        ),
        st.sampled_from([True, True, False]),
        st.sampled_from([".tfrecord", ".tfrecord.gz"]),
        st.sampled_from([150, 1 << 20]),
    ),
    min_size=1,
    max_size=3,
)


def write(folder: Path, files: list[File]) -> tuple[list[str], dict[int, Any]]:
    """Write files; return their paths, and the shapes that reading each of them gives, by id."""
    paths, shapes = [], {}
    for number, file in enumerate(files):
        paths.append(str(folder / f"in-{number}{file.ending}"))
        with Writer(paths[-1], sidecar=file.sidecar, block_size=file.block_size) as writer:
            for index, shape in enumerate(file.shapes):
                row: dict[str, Any] = {"id": 100 * number + index}
                if shape is not None:
                    row["x"] = np.ones(shape)
                    row["word"] = np.full(shape, b"w", object)
                writer.write(row)
        shapes.update(shapes_in(paths[-1]))
    return paths, shapes


def shapes_in(*paths: object) -> dict[int, Any]:
    """Return the shapes of both features as ``read`` gives them, by id."""
    return {
        int(row["id"][0]): [np.shape(row[name]) if name in row else None for name in ("x", "word")]
        for path in paths
        for row in read(str(path))
    }


@settings(max_examples=60, deadline=None)
@given(_FILES, st.integers(1, 5))
def test_every_record_keeps_its_axes(files: list[File], number: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths, shapes = write(folder, files)
        tfrio.merge(paths, folder / "all.tfrecord.gz")
        assert shapes_in(folder / "all.tfrecord.gz") == shapes
        report = tfrio.reshard(paths, folder / "part", max_records=number)
        assert shapes_in(*(row.path for row in report.files)) == shapes
        tfrio.filter_examples(paths, folder / "some", where=f"id % {number} == 0")
        kept = {n: s for n, s in shapes.items() if n % number == 0}
        assert shapes_in(folder / "some") == kept
        # Over a file that notes something, and one of the sources at that.
        tfrio.merge(paths, paths[0], keep=lambda p: len(p) % 2 == 0, overwrite=True)
        left = shapes_in(paths[0])
        assert left == {n: shapes[n] for n in left}


@settings(max_examples=60, deadline=None)
@given(_FILES, st.data())
def test_records_around_a_damaged_one_keep_their_axes(files: list[File], data: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain = [file._replace(ending=".tfrecord") for file in files]
        paths, shapes = write(folder, plain)
        known = 0
        for file, path in zip(plain, paths, strict=True):
            if file.shapes:
                hit = data.draw(st.integers(0, len(file.shapes) - 1))
                damage(path, hit, header=data.draw(st.booleans()))
            report = tfrio.repair(path, path + ".saved")
            got = shapes_in(path + ".saved") if report.kept else {}
            assert got == {n: shapes[n] for n in got}
            assert len(got) == report.kept >= len(file.shapes) - 1
            known += report.kept - report.repaired_headers
        tfrio.merge(paths, folder / "all", errors="skip")
        got = shapes_in(folder / "all")
        assert len(got) == known
        assert got == {n: shapes[n] for n in got}


def damage(path: str, record: int, *, header: bool) -> None:
    """Flip a bit of a record of a plain file, which keeps its size."""
    offset = int(build_index(path).offsets[record])
    content = bytearray(Path(path).read_bytes())
    content[offset + (9 if header else 13)] ^= 1
    Path(path).write_bytes(content)


def test_records_behind_a_lost_block_keep_their_axes(tmp_path: Path) -> None:
    shapes: list[Shape] = [(2, 3) if n % 3 else (3, 5 + n) for n in range(40)]
    (path,), wanted = write(tmp_path, [File(shapes, True, ".tfrecord.gz", 400)])
    content = bytearray(Path(path).read_bytes())
    content[len(content) // 2] ^= 4
    Path(path).write_bytes(content)
    report = tfrio.repair(path, tmp_path / "saved.tfrecord")
    got = shapes_in(tmp_path / "saved.tfrecord")
    assert 20 < len(got) == report.kept < 40
    assert got == {n: wanted[n] for n in got}
    assert 39 in got


def test_an_interrupted_split_goes_on_with_its_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, shapes = write(tmp_path, [File([(2, 3), (3, 2)] * 4, True, ".tfrecord", 1 << 20)])
    finished: list[str] = []

    def stop(carried: Carried, target: str) -> None:
        finished.append(target)
        save(carried, target)
        if len(finished) == 2:
            raise KeyboardInterrupt

    save = Carried.save
    monkeypatch.setattr(Carried, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        tfrio.reshard(paths, tmp_path / "out", max_records=3)
    report = tfrio.reshard(paths, tmp_path / "out", max_records=3)
    assert report.resumed == 1
    assert shapes_in(*(row.path for row in report.files)) == shapes
    again = tfrio.reshard(paths, tmp_path / "out", max_records=3, overwrite=True)
    assert shapes_in(*(row.path for row in again.files)) == shapes


COMMANDS: list[Callable[[str, str], list[str]]] = [
    lambda path, out: ["merge", path, out, "--overwrite"],
    lambda path, out: ["filter", "id < 100", path, out, "--overwrite"],
    lambda path, out: ["repair", path, out, "--overwrite"],
    lambda path, out: ["convert", path, out, "--overwrite"],
]


@pytest.mark.parametrize("command", COMMANDS, ids=["merge", "filter", "repair", "convert"])
@pytest.mark.parametrize("out", ["out.tfrecord", "memory://carried/out.gz", "in-0.tfrecord"])
def test_commands_note_the_axes_and_leave_no_stale_note(
    tmp_path: Path, command: Callable[[str, str], list[str]], out: str
) -> None:
    target = out if "://" in out else str(tmp_path / out)
    file = File([(2, 3), (3, 2), (6,)], True, ".tfrecord", 1 << 20)
    for sidecar in (True, False):
        (path,), shapes = write(tmp_path, [file])
        if not sidecar:
            Path(path + SUFFIX).unlink()
            shapes = shapes_in(path)
        result = CliRunner().invoke(main, command(path, target))
        assert result.exit_code == 0, result.output
        assert shapes_in(target) == shapes
        assert (load_sidecar(target) is not None) == sidecar
    if "://" not in out:
        assert not Path(target + SUFFIX).exists()


def test_split_command_notes_the_axes(tmp_path: Path) -> None:
    (path,), shapes = write(tmp_path, [File([(2, 3)] * 5, True, ".tfrecord", 1 << 20)])
    prefix = str(tmp_path / "out" / "part")
    result = CliRunner().invoke(main, ["split", path, prefix, "--shards", "2"])
    assert result.exit_code == 0, result.output
    shards = sorted((tmp_path / "out").glob("*.tfrecord"))
    assert shapes_in(*shards) == shapes
    assert json.loads(Path(f"{shards[0]}{SUFFIX}").read_text())["bytes"] == shards[0].stat().st_size


def test_notes_of_whole_files_joined(tmp_path: Path) -> None:
    def write(name: str, *shapes: tuple[int, ...], sidecar: bool = True) -> tuple[str, int]:
        with Writer(tmp_path / name, sidecar=sidecar, sequence=True) as writer:
            for shape in shapes:
                writer.write_sequence({"x": np.ones(shape)}, {"s": [np.ones((2, 2))]})
        return str(tmp_path / name), len(shapes)

    def joined(*parts: tuple[str, int]) -> list[Any]:
        with Writer(tmp_path / "all", sequence=True) as writer:
            for path, _ in parts:
                for payload in read_records(path):
                    writer.write_payload(payload)
        carried = Carried(path for path, _ in parts)
        for path, records in parts:
            carried.take(path, range(records))
        carried.save(str(tmp_path / "all"))
        return [(row["x"].shape, np.shape(row["s"])) for row in read(tmp_path / "all")]

    wide, tall = write("wide", (2, 3), (2, 3)), write("tall", (3, 2))
    mixed, lost = write("mixed", (1, 2), (3, 3)), write("lost", (2, 3), sidecar=False)
    empty = write("empty")
    assert joined(wide, empty, wide) == [((2, 3), (1, 2, 2))] * 4
    noted = load_sidecar(tmp_path / "all")
    assert noted is not None
    assert noted.rows == {}
    wanted = [(2, 3), (2, 3), (3, 2), (1, 2), (3, 3)]
    assert joined(wide, tall, mixed) == [(shape, (1, 2, 2)) for shape in wanted]
    assert joined(lost, tall) == [((6,), (1, 4)), ((3, 2), (1, 4))]
    assert joined(lost) == [((6,), (1, 4))]
    assert load_sidecar(tmp_path / "all") is None


def test_every_other_record_of_many_makes_one_run(tmp_path: Path) -> None:
    with Writer(tmp_path / "a") as writer:
        writer.write({"x": np.zeros((2, 3)), "y": np.zeros((1, 2))})
    with Writer(tmp_path / "b") as writer:
        writer.write({"x": np.zeros((3, 2))})
    sources = [str(tmp_path / name) for name in "ab"]
    carried = Carried(sources)
    for source in sources:
        for number in range(0, 20_000, 100):
            carried.take(source, list(range(number, number + 100, 2)))
    carried.save(str(tmp_path / "a"))
    found = load_sidecar(str(tmp_path / "a"))
    assert found is not None
    assert list(found.rows["x"].runs()) == [(0, (2, 3), 10_000), (10_000, (3, 2), 10_000)]
    assert list(found.rows["y"].runs()) == [(0, (1, 2), 10_000)]


def test_what_cannot_be_carried_is_told(tmp_path: Path) -> None:
    for name, axes in (("a", (2, 3)), ("b", (3, 2))):
        with Writer(tmp_path / name, sequence=True) as writer:
            writer.write_sequence({"x": np.ones(axes)}, {"steps": [np.ones(axes)]})
    sources = [str(tmp_path / "a"), str(tmp_path / "b")]
    with pytest.warns(TfrioWarning, match=r"all: .* of \['steps'\], .* with a schema"):
        tfrio.merge(sources, tmp_path / "all")
    assert [row["x"].shape for row in read(tmp_path / "all")] == [(2, 3), (3, 2)]


def test_a_damaged_sidecar_stops_before_anything_is_written(tmp_path: Path) -> None:
    (path,), _ = write(tmp_path, [File([(2, 3)], True, ".tfrecord", 1 << 20)])
    Path(path + SUFFIX).write_text("{")
    for work in (tfrio.merge, tfrio.repair):
        with pytest.raises(SchemaError, match="remove the file to go on without"):
            work(path, tmp_path / "out")
        assert not (tmp_path / "out").exists()


@given(
    st.lists(st.tuples(st.sampled_from(_SHAPES[:3]), st.integers(1, 4)), max_size=8),
    st.integers(0, 20),
    st.integers(0, 20),
)
def test_runs_between_two_records(runs: list[Any], first: int, length: int) -> None:
    axes, end = RowAxes(), 0
    for shape, count in runs:
        axes.note(end + count % 2, shape, count)
        end += count + count % 2
    told = {
        record: shape
        for start, shape, count in axes.between(first, first + length)
        for record in range(start, start + count)
    }
    wanted = {record: axes.at(record) for record in range(first, first + length)}
    assert told == {record: shape for record, shape in wanted.items() if shape is not None}


def test_nothing_is_noted_beside_a_pipe(tmp_path: Path) -> None:
    (path,), _ = write(tmp_path, [File([(2, 3)], True, ".tfrecord", 1 << 20)])
    for work in (tfrio.merge, tfrio.repair):
        work(path, "/dev/null")
    assert not Path("/dev/null" + SUFFIX).exists()
