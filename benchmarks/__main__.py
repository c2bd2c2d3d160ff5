"""Run the small form of the benchmarks, without peers: `make bench`."""

from __future__ import annotations

from benchmarks import examples

if __name__ == "__main__":
    examples.main(["--small"])
