"""The picture of patches is what its script draws from the real grid."""

from __future__ import annotations

import runpy
from pathlib import Path

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"


def test_the_picture_of_patches_is_up_to_date() -> None:
    drawn = runpy.run_path(str(PICTURES / "draw_patches.py"))["drawing"]()
    assert (PICTURES / "patches.svg").read_text(encoding="utf-8") == drawn
