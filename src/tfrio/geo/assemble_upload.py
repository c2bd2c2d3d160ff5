"""Manifests for ``earthengine upload image``: which files make one asset. No network is used.

The form is that of Earth Engine's image manifest
(https://developers.google.com/earth-engine/guides/image_manifest): one tileset whose one source
holds the uris of every shard, in order, and of the mixer at the end.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tfrio import storage
from tfrio.errors import GeoError, TfrioWarning, UsageError
from tfrio.examples.infer import infer_schema
from tfrio.geo.naming import ExportNames, group_exports
from tfrio.records.names import base_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.types import PathLike

__all__ = ["Pyramiding", "UploadPlan", "upload_manifest", "upload_manifests"]

Pyramiding: TypeAlias = Literal["MEAN", "MODE", "SAMPLE"]


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """What to upload.

    Args:
        manifests: Manifest by name of the JSON file written.
        problems: What keeps an export from being uploaded, one sentence each.
    """

    manifests: Mapping[str, Mapping[str, Any]]
    problems: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return a line for each manifest and each problem."""
        lines = [
            f"earthengine upload image --manifest {path}   # {manifest['name']}"
            for path, manifest in self.manifests.items()
        ]
        return "\n".join([*lines, *self.problems])


def upload_manifest(
    asset: str,
    uris: Sequence[str],
    *,
    mixer: str,
    bands: Sequence[str] | None = None,
    pyramiding: Pyramiding = "MEAN",
    nodata: float | Sequence[float] | None = None,
    last_band_alpha: bool = False,
    properties: Mapping[str, Any] | None = None,
    start_time: str | None = None,
    end_time: str | None = None,
) -> dict[str, Any]:
    """Describe one upload.

    Args:
        asset: Id of the asset: ``projects/PROJECT/assets/NAME``.
        uris: ``gs://`` addresses of the prediction files, in order.
        mixer: Address of the mixer.
        bands: New band names, in the order of the features; None keeps the features' names.
        pyramiding: How pixels are summed up: ``"MEAN"``, ``"MODE"`` (classes) or ``"SAMPLE"``.
        nodata: Value that means missing, one for all bands or one for each.
        last_band_alpha: Whether the last band is the mask.
        properties: Properties of the asset.
        start_time: Begin of the time it shows, ISO 8601.
        end_time: Its end.

    Returns:
        The manifest.

    Raises:
        UsageError: Nodata and an alpha band together, or an unknown policy.
    """
    if pyramiding not in get_args(Pyramiding):
        raise UsageError(f"pyramiding must be MEAN, MODE or SAMPLE; got {pyramiding!r}")
    if nodata is not None and last_band_alpha:
        raise UsageError("nodata and last_band_alpha exclude each other: give one of them")
    if not uris:
        raise UsageError(f"{asset}: no file to upload")
    _warn_of_names(uris)
    manifest: dict[str, Any] = {
        "name": asset,
        "tilesets": [{"id": "ts", "sources": [{"uris": [*uris, mixer]}]}],
        "pyramidingPolicy": pyramiding,
    }
    if bands:
        manifest["bands"] = [
            {"id": name, "tilesetId": "ts", "tilesetBandIndex": index}
            for index, name in enumerate(bands)
        ]
    if nodata is not None:
        values = list(nodata) if not isinstance(nodata, float | int) else [nodata]
        manifest["missingData"] = {"values": values}
    if last_band_alpha:
        manifest["maskBands"] = [{"tilesetId": "ts"}]
    optional = {"properties": properties, "startTime": start_time, "endTime": end_time}
    return manifest | {key: value for key, value in optional.items() if value}


def _warn_of_names(uris: Sequence[str]) -> None:
    """Warn of names that the service takes for single images instead of shards of one."""
    odd = [uri for uri in uris if not uri.lower().endswith((".tfrecord", "tfrecord.gz"))]
    if odd:
        warnings.warn(
            f"{odd[0]}: Earth Engine takes files as shards of one image only where a name ends in "
            ".tfrecord or tfrecord.gz. Rename it before the upload",
            TfrioWarning,
            stacklevel=4,
        )


def upload_manifests(
    folder: PathLike,
    *,
    assets: str,
    uri: str,
    out: PathLike | None = None,
    mixer: str | None = None,
    bands: Sequence[str] | None = None,
    pyramiding: Pyramiding = "MEAN",
    nodata: float | Sequence[float] | None = None,
    last_band_alpha: bool = False,
    properties: Mapping[str, Any] | None = None,
    start_time: str | None = None,
    end_time: str | None = None,
) -> UploadPlan:
    """Write a manifest for each export or set of predictions in a folder.

    Args:
        folder: Local folder with shards and mixers.
        assets: Where the assets go: ``projects/PROJECT/assets/FOLDER``; the name of each is its
            files' prefix.
        uri: ``gs://`` folder that the files are, or will be, copied to.
        out: Folder for the JSON files; the same folder by default.
        mixer: Name of the mixer for all sets that have none of their own, as predictions do.
        bands: New band names; None keeps the features' names.
        pyramiding: See ``upload_manifest``.
        nodata: See ``upload_manifest``.
        last_band_alpha: See ``upload_manifest``.
        properties: See ``upload_manifest``.
        start_time: See ``upload_manifest``.
        end_time: See ``upload_manifest``.

    Returns:
        The manifests written, and what is wrong with the sets that have none.

    Raises:
        GeoError: There is no TFRecord file in the folder.
    """
    names = [base_name(entry.path) for entry in storage.list_folder(os.fspath(folder))]
    exports = group_exports(names)
    if not exports:
        raise GeoError(f"{folder}: no TFRecord file here. Give the folder of the predictions")
    target = Path(os.fspath(out if out is not None else folder))
    manifests: dict[str, dict[str, Any]] = {}
    problems = []
    for export in exports:
        own = export.mixer or mixer
        problem = _problem(export, own, names, os.fspath(folder))
        if problem or own is None:
            problems.append(problem)
            continue
        place = uri.rstrip("/")
        prefix = base_name(export.prefix)
        manifest = upload_manifest(
            f"{assets.rstrip('/')}/{prefix}",
            [f"{place}/{name}" for name in export.shards],
            mixer=f"{place}/{own}",
            bands=bands or _features(Path(os.fspath(folder)) / export.shards[0]),
            pyramiding=pyramiding,
            nodata=nodata,
            last_band_alpha=last_band_alpha,
            properties=properties,
            start_time=start_time,
            end_time=end_time,
        )
        path = target / f"{prefix}-upload.json"
        with storage.atomic_write(path) as file:
            file.write(json.dumps(manifest, indent=2).encode() + b"\n")
        manifests[str(path)] = manifest
    return UploadPlan(manifests, tuple(problems))


def _features(shard: Path) -> list[str]:
    """Return the features of a shard's first record, which become the bands."""
    return list(infer_schema(shard, sample=1))


def _problem(export: ExportNames, mixer: str | None, names: Sequence[str], folder: str) -> str:
    """Say what keeps a set of files from being uploaded, "" where nothing does."""
    where = f"{folder}: {export.prefix}"
    if mixer is None:
        return f"{where} has no mixer; give the one of its export with mixer="
    if mixer not in names:
        return f"{where}: the mixer {mixer} is not in the folder; copy it there"
    if export.missing:
        return f"{where}: shard {', '.join(f'{n:05d}' for n in export.missing)} is missing"
    if export.repeated:
        return f"{where}: shard {export.repeated[0]:05d} is there more than once"
    return ""
