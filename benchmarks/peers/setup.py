"""Make an environment for each peer under .bench/, with pinned versions.

Run: python benchmarks/peers/setup.py

A peer that cannot be installed here is left out, and said so.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / ".bench"
# Each owns an environment: two of them claim the same import names, and TensorFlow pins protobuf.
PEERS = {
    "tensorflow": ["tensorflow-cpu==2.21.0"],
    "tfrecord": ["tfrecord==1.14.6", "numpy>=1.26", "torch==2.13.0"],
    "rustfrecord": ["rustfrecord==0.1.7"],
    "tfx_bsl": ["tfx-bsl==1.21.0"],
    "lite": ["tfrecord-lite==0.0.8", "numpy>=1.26"],
}


def python_of(peer: str) -> Path:
    """Return the interpreter of a peer's environment."""
    return FOLDER / peer / "bin" / "python"


def ready(peer: str) -> bool:
    """Return whether a peer is installed as pinned."""
    stamp = FOLDER / peer / "installed"
    return stamp.is_file() and stamp.read_text() == " ".join(PEERS[peer])


def install(peer: str) -> bool:
    """Make the environment of a peer; return whether it worked."""
    if ready(peer):
        return True
    print(f"installing {' '.join(PEERS[peer])} ...", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(FOLDER / peer)], check=True)
    done = subprocess.run(
        [str(python_of(peer)), "-m", "pip", "install", "--quiet", *PEERS[peer]], check=False
    )
    if done.returncode == 0:
        (FOLDER / peer / "installed").write_text(" ".join(PEERS[peer]))
    return done.returncode == 0


def main() -> None:
    for peer in PEERS:
        if not install(peer):
            print(f"{peer}: cannot be installed here, left out")


if __name__ == "__main__":
    main()
