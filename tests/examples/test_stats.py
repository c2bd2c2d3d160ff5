"""Statistics of features, against NumPy over all values at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples.helpers import KINDLESS, Empty, example, put, sequence
from tfrio.errors import CorruptRecordError, UsageError
from tfrio.examples.stats import stats
from tfrio.examples.tally import is_fill
from tfrio.examples.writer import Writer


def test_no_value_and_no_feature_are_told_apart(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example({"x": [1]}),
        example({"x": Empty("int64_list")}),
        example({}),
        example({"x": [2, 3]}),
    )
    found = stats(path)
    x = found["x"]
    assert (found.files, found.records) == (1, 4)
    assert (x.present, x.empty, x.lengths, x.values) == (3, 1, (0, 2), 3)
    assert found.to_dict()["features"][0]["absent"] == found.absent("x") == 1
    assert "3 of 4" in str(found)
    assert (x.minimum, x.maximum, x.mean) == (1, 3, 2.0)
    with pytest.raises(KeyError, match="no feature 'y'; there are"):
        found["y"]


def test_nan_and_infinity_are_counted_and_left_out_of_the_mean(tmp_path: Path) -> None:
    values = [1.0, float("nan"), 3.0, float("inf"), float("-inf")]
    found = stats(put(tmp_path / "a", example({"x": values}), example({"x": KINDLESS})))
    x = found["x"]
    assert (x.nan, x.infinite, x.mean, x.std) == (1, 2, 2.0, 1.0)
    assert (x.minimum, x.maximum) == (-np.inf, np.inf)
    assert x.present == 1
    json.dumps(found.to_dict(), allow_nan=False)


def test_bytes_images_and_the_share_of_names(tmp_path: Path) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(50)
    jpeg = b"\xff\xd8\xff\xe0" + bytes(20)
    mangled = jpeg.decode("latin-1").encode()
    path = put(
        tmp_path / "a",
        *[
            example({"a_rather_long_name": [v], "n": [1]})
            for v in (png, jpeg, mangled, b"text" * 9)
        ],
    )
    found = stats(path)
    image = found["a_rather_long_name"]
    assert dict(image.formats) == {"PNG": 1, "JPEG": 1, "UTF-8-encoded JPEG": 1}
    assert (image.minimum, image.maximum) == (len(jpeg), len(png))
    assert image.name_bytes == 4 * (len("a_rather_long_name") + 2)
    shares = [f["share"] for f in found.to_dict()["features"]]
    assert sum(shares) == pytest.approx(1)
    assert shares[0] > shares[1]


def test_two_kinds_and_feature_lists(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a",
        example({"x": [1]}),
        example({"x": [0.5]}),
        sequence({"x": [2]}, {"s": [[1, 2], Empty("int64_list")]}),
    )
    found = stats(path)
    assert dict(found["x"].kinds) == {"int64": 2, "float": 1}
    assert (found["s"].steps, found["s"].lengths, found["s"].empty) == ((2, 2), (0, 2), 1)


def test_selected_features_and_several_files(tmp_path: Path) -> None:
    for k in range(3):
        put(tmp_path / f"p{k}", example({"x": [k], "y": [9]}))
    found = stats(str(tmp_path / "p*"), features=["x"])
    assert found.files == 3
    assert [name for name, _ in found.features] == ["x"]
    assert (found["x"].minimum, found["x"].maximum) == (0, 2)


def test_damage_stops_or_is_skipped(tmp_path: Path) -> None:
    path = Path(put(tmp_path / "a", *(example({"x": [k]}) for k in range(3))))
    data = bytearray(path.read_bytes())
    data[-6] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        stats(str(path))
    with pytest.warns(match="skipped 1 damaged"):
        assert stats(str(path), errors="skip").records == 2


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=5)),
    st.lists(st.lists(st.integers(-(1 << 63), (1 << 63) - 1), max_size=5)),
)
def test_numbers_equal_numpy(
    tmp_path_factory: pytest.TempPathFactory, floats: list[list[float]], ints: list[list[int]]
) -> None:
    folder = tmp_path_factory.mktemp("stats")
    put(folder / "a", *(example({"f": v or Empty("float_list")}) for v in floats))
    put(folder / "b", *(example({"i": v or Empty("int64_list")}) for v in ints))
    found = stats([str(folder / "a"), str(folder / "b")])
    for name, lists in (("f", floats), ("i", ints)):
        if not lists:
            continue
        flat = np.array([v for values in lists for v in values], np.float64)
        feature = found[name]
        assert feature.values == len(flat)
        assert feature.empty == sum(not v for v in lists)
        if len(flat):
            exact = [v for values in lists for v in values]
            assert (feature.minimum, feature.maximum) == (min(exact), max(exact))
            assert feature.mean == pytest.approx(flat.mean(), rel=1e-9, abs=1e-9 * abs(flat).max())
            scale = max(abs(flat).max(), 1e-30)
            assert feature.std == pytest.approx(flat.std(), rel=1e-6, abs=1e-6 * scale)


def test_statistics_read_as_a_table(tmp_path):
    with Writer(tmp_path / "a.tfrecord") as writer:
        for number in range(3):
            writer.write({"n": number, "image": b"\xff\xd8\xff\xe0" + bytes(12)})
    lines = str(stats(tmp_path / "a.tfrecord")).splitlines()
    assert lines[0] == "1 file, 3 records"
    assert lines[1].split()[:4] == ["feature", "kind", "values", "present"]
    cells = {line.split("  ")[0]: line.split() for line in lines[2:]}
    assert "always" in cells["n"]
    assert "(JPEG" in cells["image"]


def test_progress_ends_at_the_size_of_all_files(tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.tfrecord.gz" for name in "ab"]
    for path in paths:
        with Writer(path) as writer:
            for k in range(5):
                writer.write({"x": [k]})
    calls: list[tuple[int, int]] = []
    stats([str(path) for path in paths], progress=lambda *now: calls.append(now))
    size = sum(path.stat().st_size for path in paths)
    assert calls[-1] == (size, size)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_a_fill_is_counted_and_left_out_of_the_numbers(tmp_path: Path) -> None:
    numbers, whole = np.float32([0.1, 2, 0.1, 5]), [0, 4, 0, 8, 8]
    for name in ("a", "b"):
        with Writer(tmp_path / name) as writer:
            writer.write({"x": numbers, "n": whole, "y": numbers, "name": "0"})
    found = stats([str(tmp_path / "a"), str(tmp_path / "b")], fill={"x": 0.1, "n": 0, "name": 0})
    assert (found["x"].filled, found["x"].values) == (4, 8)
    assert (found["x"].minimum, found["x"].maximum, found["x"].mean) == (2, 5, 3.5)
    assert (found["n"].filled, found["n"].minimum) == (4, 4)
    assert (found["y"].filled, found["name"].filled) == (0, 0)
    assert found["y"].minimum == np.float32(0.1)
    assert "fill" in found.table()[0]
    assert "fill" not in stats(tmp_path / "a").table()[0]
    everything = stats(tmp_path / "a", fill={"n": 4.5})
    assert everything["n"].filled == 0


@pytest.mark.parametrize("fill", [0, ["x"], {"x": "0"}, {"x": None}])
def test_a_fill_is_numbers_by_name(tmp_path: Path, fill: object) -> None:
    with pytest.raises(UsageError, match="fill is a dict of numbers by feature"):
        stats(tmp_path / "a", fill=fill)


def test_the_fill_is_compared_as_it_is_stored() -> None:
    assert is_fill(np.int64([0, 1, -9999]), 0.5).tolist() == [False, False, False]
    assert is_fill(np.int64([0, 1, -9999]), -9999.0).tolist() == [False, False, True]
    assert is_fill(np.float32([0.1, 0.5, np.nan]), 0.1).tolist() == [True, False, False]
