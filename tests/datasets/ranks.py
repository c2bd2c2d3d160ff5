"""A training process for the tests of ranks: reads epochs and writes down the ids it was given.

Run as a script with a JSON object: glob, out, epochs, workers, and for two ranks: store, rank,
world. Each line written is ``epoch id``; a state file follows each batch. With ``die_at`` the
process kills itself, as a machine would, after so many batches.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from tfrio.torch import TFRecordDataset


def main(options):
    if "store" in options:
        dist.init_process_group(
            "gloo",
            init_method=f"file://{options['store']}",
            rank=options["rank"],
            world_size=options["world"],
        )
    torch.manual_seed(options.get("rank", 0))
    for persistent in options.get("persistent", [True]):
        data = TFRecordDataset(options["glob"], batch_size=4, shuffle=True, seed=5, features=["id"])
        loader = data.loader(num_workers=options["workers"], persistent_workers=persistent)
        train(loader, options, f"{options['out']}-{persistent}")
    if dist.is_initialized():
        dist.destroy_process_group()


def train(loader, options, path):
    state_file = Path(path + ".state")
    if state_file.exists():
        loader.load_state_dict(json.loads(state_file.read_text()))
    batches = 0
    with open(path, "a") as out:
        while (epoch := loader.state_dict()["epoch"]) < options["epochs"]:
            for batch in loader:
                if dist.is_initialized():  # hangs where ranks get unequal numbers of batches
                    dist.all_reduce(torch.ones(1))
                for number in batch["id"].ravel().tolist():
                    print(epoch, number, file=out)
                out.flush()
                state_file.with_suffix(".new").write_text(json.dumps(loader.state_dict()))
                state_file.with_suffix(".new").replace(state_file)
                batches += 1
                if batches == options.get("die_at"):
                    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
