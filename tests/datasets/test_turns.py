"""Which epoch comes next, where workers keep their own copy of the dataset."""

from __future__ import annotations

import numpy as np
import pytest

from tfrio.datasets.state import Progress
from tfrio.datasets.turns import BOX_SIZE, Turns


def pair():
    """Return the turns of a main process and of a worker that share a box."""
    box = np.zeros(BOX_SIZE, np.int64)
    return Turns(box), Turns(box)


def test_set_epoch_reaches_workers():
    main, worker = pair()
    main.set_epoch(3)
    assert worker.begin(1, 2) == (Progress(3, worker=1, workers=2), False)
    assert worker.begin(1, 2) == (Progress(3, worker=1, workers=2), False)  # the first one tells
    assert [worker.begin(0, 2)[1] for _ in range(2)] == [False, True]
    main.set_epoch(4)
    assert worker.begin(1, 2) == (Progress(4, worker=1, workers=2), False)


def test_a_resumed_epoch_is_resumed_once():
    main, _ = pair()
    progress = Progress(2, 40)
    main.begin_at(progress)
    assert main.starting == progress
    main.set_epoch(2)
    assert main.begin(0, 1) == (progress, False)
    assert main.begin(0, 1) == (Progress(2), True)
    main.begin_at(progress)
    main.set_epoch(3)
    assert main.starting == Progress(3)


def test_a_worker_forgets_what_it_resumed_when_the_epoch_moves_on():
    main, worker = pair()
    worker.begin_at(Progress(2, 40))
    assert worker.begin(0, 2)[0].consumed == 40
    main.set_epoch(3)
    assert worker.begin(0, 2)[0] == Progress(3, worker=0, workers=2)


@pytest.mark.parametrize("over", [(True, True), (True, False)])
def test_the_next_epoch_follows_when_all_workers_were_at_the_end(over):
    main, worker = pair()
    for number, ended in enumerate(over):
        progress = Progress(5, worker=number, workers=2, delivered=9)
        worker.begin_worker_at(progress, number, over=ended)
        assert worker.begin(number, 2)[0] == progress
    wanted = 6 if all(over) else 0
    assert main.begin(0, 2)[0].epoch == wanted
    assert main.begin(1, 2)[0].epoch == wanted


def test_a_pass_of_workers_is_known_until_the_epoch_is_set():
    main, worker = pair()
    assert not main.away
    for again in (lambda: main.set_epoch(0), lambda: main.begin_at(Progress(0, 4))):
        worker.away = True
        worker.begin_worker_at(Progress(0, 4), 1, over=False)
        assert main.away
        assert worker.begin(255, 256)[0].epoch == 0  # it is no worker's next epoch
        again()
        assert not main.away


def test_more_workers_than_slots_still_begin():
    main, _ = pair()
    main.set_epoch(1)
    assert main.begin(1000, 1001)[0] == Progress(1, worker=1000, workers=1001)
