"""Rank and world size: given, from torch.distributed, from the environment, or alone."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from tfrio.datasets.place import find_place
from tfrio.errors import UsageError


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)


def test_alone():
    assert find_place() == (0, 1)


def test_environment(monkeypatch):
    monkeypatch.setenv("RANK", "2")
    assert find_place() == (0, 1)
    monkeypatch.setenv("WORLD_SIZE", "5")
    assert find_place() == (2, 5)


def test_torch_comes_before_the_environment(monkeypatch):
    fake = SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: True,
        get_rank=lambda: 1,
        get_world_size=lambda: 3,
    )
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "5")
    monkeypatch.setitem(sys.modules, "torch.distributed", fake)
    assert find_place() == (1, 3)
    fake.is_initialized = lambda: False
    assert find_place() == (2, 5)
    fake.is_available = lambda: False
    assert find_place() == (2, 5)


def test_what_is_given_comes_first(monkeypatch):
    monkeypatch.setenv("RANK", "2")
    monkeypatch.setenv("WORLD_SIZE", "5")
    assert find_place(1, 4) == (1, 4)


@pytest.mark.parametrize(("rank", "world"), [(4, 4), (-1, 2), (0, 0)])
def test_impossible_ranks_are_refused(rank, world):
    with pytest.raises(
        UsageError, match=rf"rank {rank} is|(rank|world_size) must be .* got (-1|0)"
    ):
        find_place(rank, world)


def test_half_a_place_is_refused():
    with pytest.raises(UsageError, match="both"):
        find_place(rank=1)


def test_nonsense_in_the_environment_is_refused(monkeypatch):
    monkeypatch.setenv("RANK", "first")
    monkeypatch.setenv("WORLD_SIZE", "5")
    with pytest.raises(UsageError, match="RANK='first'"):
        find_place()
