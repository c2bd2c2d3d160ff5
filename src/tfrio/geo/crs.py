"""CRSs as text, the way a mixer names them."""

from __future__ import annotations

from typing import Any

from tfrio.errors import UsageError, require

__all__ = ["crs_fault", "crs_text"]

# What PROJ knows by these names; a code it lacks is a slip of the code.
_AUTHORITIES = ("EPSG", "ESRI", "OGC", "IAU_2015", "IGNF", "NKG")


def crs_text(crs: Any) -> str:
    """Return a CRS as a mixer names it: authority and code where they say it all, else WKT.

    Args:
        crs: A rasterio CRS, or anything rasterio turns into one.

    Returns:
        For example ``EPSG:32618``, ``ESRI:102033`` or a WKT.

    Raises:
        UsageError: Not a CRS.
    """
    module = require("rasterio.crs", extra="geo")
    errors = require("rasterio.errors", extra="geo")
    rasterio = require("rasterio", extra="geo")
    try:
        with rasterio.Env():  # so that GDAL tells its errors to us, not to the terminal
            known = module.CRS.from_user_input(crs)
        authority = known.to_authority()
        if authority is not None and module.CRS.from_authority(*authority) == known:
            return ":".join(authority)
        return str(known.to_wkt())
    except errors.CRSError as error:
        reason = " ".join(str(error.__cause__ or error).split())
        raise UsageError(
            f"{crs!r} is not a CRS: {crs_fault(crs)} ({reason}). "
            "Give 'EPSG:32618', a WKT or a PROJ string"
        ) from error


def crs_fault(crs: Any) -> str:
    """Say why something that GDAL does not take is no CRS: what is unknown about a code."""
    authority, colon, code = str(crs).partition(":")
    if not (colon and code.isalnum()):
        return "not understood"
    known = authority.upper() in _AUTHORITIES
    return f"{authority} has no {code}" if known else f"unknown authority {authority}"
