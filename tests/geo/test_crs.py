"""CRSs as text."""

from __future__ import annotations

import pytest
import rasterio.crs

from tfrio.errors import UsageError
from tfrio.geo.crs import crs_text


@pytest.mark.parametrize("code", ["EPSG:32618", "ESRI:102033", "EPSG:4326", "OGC:CRS84"])
def test_codes_stay_codes(code: str) -> None:
    assert crs_text(code) == code
    assert crs_text(rasterio.crs.CRS.from_user_input(code)) == code


def test_what_has_no_code_becomes_wkt() -> None:
    text = crs_text("+proj=sinu +R=6371007.181")
    assert text.startswith("PROJCS[")
    assert crs_text(text) == text


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("SR-ORG:6974", "'SR-ORG:6974' is not a CRS: unknown authority SR-ORG"),
        ("EPSG:999999", "EPSG has no 999999.*Give 'EPSG:32618'"),
        ("PROJCS[bad", "not understood .*could not be parsed"),
        (None, "is not a CRS"),
    ],
)
def test_what_is_none_is_told(
    given: object, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UsageError, match=message):
        crs_text(given)
    assert capfd.readouterr() == ("", "")
