"""Manifests for ``earthengine upload image``: which files make one asset. No network is used.

The form is that of Earth Engine's image manifest
(https://developers.google.com/earth-engine/guides/image_manifest): one tileset whose one source
holds the uris of every shard, in order, and of the mixer at the end.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from tfrio import storage
from tfrio.errors import GeoError, UsageError, warn_user
from tfrio.examples.infer import infer_schema
from tfrio.geo.mixer import read_mixer
from tfrio.geo.naming import ExportNames, group_exports, parse_shard_name
from tfrio.records.access import RecordFile
from tfrio.records.names import base_name, is_record_name
from tfrio.types import path_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tfrio.types import PathLike

__all__ = ["Pyramiding", "UploadPlan", "upload_manifest", "upload_manifests"]

Pyramiding: TypeAlias = Literal["MEAN", "MODE", "SAMPLE", "MIN", "MAX", "MEDIAN"]


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """What to upload.

    Args:
        manifests: Manifest by name of the JSON file written.
        problems: What keeps an export from being uploaded, one sentence each.
        left_out: Prefixes of exports that predictions were made from; see ``upload_manifests``.
    """

    manifests: Mapping[str, Mapping[str, Any]]
    problems: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """Return a line for each manifest and each problem."""
        lines = [
            f"earthengine upload image --manifest {path}   # {manifest['name']}"
            for path, manifest in self.manifests.items()
        ]
        inputs = [
            f"{prefix} is left out: the input of predictions, with a manifest of its own. To "
            "upload it, move it into a folder without predictions"
            for prefix in self.left_out
        ]
        return "\n".join([*lines, *inputs, *self.problems])


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
        asset: Id of the asset: ``projects/PROJECT/assets/NAME``, or ``users/USER/NAME``.
        uris: ``gs://`` addresses of the prediction files, in order.
        mixer: Address of the mixer.
        bands: New band names, in the order of the features; None keeps the features' names.
        pyramiding: How pixels are summed up: ``"MEAN"``, ``"MODE"`` (classes), ``"SAMPLE"``,
            ``"MIN"``, ``"MAX"`` or ``"MEDIAN"``.
        nodata: Value, or several, that mean missing in every band.
        last_band_alpha: Whether the last band is the mask, which then is none of ``bands``.
        properties: Properties of the asset.
        start_time: Begin of the time it shows, ISO 8601.
        end_time: Its end.

    Returns:
        The manifest.

    Raises:
        UsageError: Nodata and an alpha band together, an unknown policy, or names that are no
            asset or no ``gs://`` address.
    """
    if pyramiding not in get_args(Pyramiding):
        known = ", ".join(get_args(Pyramiding))
        raise UsageError(f"pyramiding must be one of {known}; got {pyramiding!r}")
    if nodata is not None and last_band_alpha:
        raise UsageError("nodata and last_band_alpha exclude each other: give one of them")
    if not uris:
        raise UsageError(f"{asset}: no file to upload")
    for uri in (*uris, mixer):
        if not uri.startswith("gs://"):
            raise UsageError(f"{uri}: Earth Engine takes files from Cloud Storage only: gs://...")
    _warn_of_names(uris)
    manifest: dict[str, Any] = {
        "name": _asset_name(asset),
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
        whole = [int(value) if float(value).is_integer() else value for value in values]
        manifest["missingData"] = {"values": whole}
    if last_band_alpha:
        manifest["maskBands"] = [{"tilesetId": "ts"}]
    optional = {"properties": properties, "startTime": start_time, "endTime": end_time}
    return manifest | {key: value for key, value in optional.items() if value}


def _asset_name(asset: str) -> str:
    """Return the name by which a manifest calls an asset."""
    folder, *rest = asset.split("/")
    if folder not in ("projects", "users") or len(rest) < 2 or not all(rest):
        raise UsageError(
            f"{asset}: no asset of Earth Engine. Write projects/PROJECT/assets/NAME, or "
            "users/USER/NAME"
        )
    if folder == "projects" and rest[1] == "assets":
        return asset
    # The manifest guide: assets of users and of old projects go by this name.
    return f"projects/earthengine-legacy/assets/{asset}"


def _warn_of_names(uris: Sequence[str]) -> None:
    """Warn of names that the service takes for single images instead of shards of one."""
    odd = [uri for uri in uris if not uri.lower().endswith((".tfrecord", "tfrecord.gz"))]
    if odd:
        warn_user(
            f"{odd[0]}: Earth Engine takes files as shards of one image only where a name ends in "
            ".tfrecord or tfrecord.gz. Rename it before the upload"
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
    overwrite: bool = False,
) -> UploadPlan:
    """Write a manifest for each set of predictions in a folder, or for each export.

    Exports that ``export_image`` wrote carry their manifest; beside predictions, which have none,
    they are what the predictions were made from, and left out.

    Args:
        folder: Local folder with shards and mixers.
        assets: Where the assets go: ``projects/PROJECT/assets/FOLDER``; the name of each is its
            files' prefix.
        uri: ``gs://`` folder that the files are, or will be, copied to.
        out: Folder for the JSON files; the same folder by default.
        mixer: The mixer for all sets that have none of their own, as predictions do; it lies in
            the folder.
        bands: New band names; None keeps the features' names.
        pyramiding: See ``upload_manifest``.
        nodata: See ``upload_manifest``.
        last_band_alpha: See ``upload_manifest``.
        properties: See ``upload_manifest``.
        start_time: See ``upload_manifest``.
        end_time: See ``upload_manifest``.
        overwrite: Replace manifests that exist.

    Returns:
        The manifests written, and what is wrong with the sets that have none.

    Raises:
        GeoError: There is no TFRecord file in the folder.
        FileExistsError: A manifest exists and ``overwrite`` is not set.
    """
    names = [base_name(entry.path) for entry in storage.list_folder(path_text(folder))]
    exports, inputs = _without_inputs(group_exports(names, counted=True))
    _warn_of_names([n for n in names if is_record_name(n) and parse_shard_name(n) is None])
    mixer = None if mixer is None else _within(path_text(folder), mixer)
    if not exports:
        raise GeoError(f"{folder}: no TFRecord file here. Give the folder of the predictions")
    target = Path(path_text(out if out is not None else folder))
    places = [_place(target, export) for export in exports]
    storage.refuse_existing(*places, overwrite=overwrite)
    manifests: dict[str, dict[str, Any]] = {}
    problems = []
    for export in exports:
        own = export.mixer or mixer
        problem = _problem(export, own, names, path_text(folder))
        found = [] if problem else _features(Path(path_text(folder)), export, last_band_alpha)
        problem = problem or _misfit(export, Path(path_text(folder)), own, found, bands)
        if problem or own is None:
            problems.append(problem)
            continue
        place = uri.rstrip("/")
        prefix = base_name(export.prefix)
        manifest = upload_manifest(
            f"{assets.rstrip('/')}/{prefix}",
            [f"{place}/{name}" for name in export.shards],
            mixer=f"{place}/{own}",
            bands=bands or found,
            pyramiding=pyramiding,
            nodata=nodata,
            last_band_alpha=last_band_alpha,
            properties=properties,
            start_time=start_time,
            end_time=end_time,
        )
        path = _place(target, export)
        with storage.atomic_write(path) as file:
            file.write(json.dumps(manifest, indent=2).encode() + b"\n")
        manifests[str(path)] = manifest
    return UploadPlan(manifests, tuple(problems), inputs)


def _place(folder: Path, export: ExportNames) -> Path:
    """Return where the manifest of a set goes."""
    return folder / f"{base_name(export.prefix)}-upload.json"


def _without_inputs(
    exports: Sequence[ExportNames],
) -> tuple[Sequence[ExportNames], tuple[str, ...]]:
    """Return the sets to upload, and the prefixes of those they were made from."""
    made = [export for export in exports if export.manifest is None]
    if not made:
        return exports, ()
    return made, tuple(export.prefix for export in exports if export.manifest is not None)


def _within(folder: str, mixer: str) -> str:
    """Return the name of a mixer that is given with its folder."""
    same = os.path.normpath(os.path.dirname(mixer)) == os.path.normpath(folder)  # noqa: PTH120
    return base_name(mixer) if same else mixer


def _features(folder: Path, export: ExportNames, last_band_alpha: bool) -> list[str]:
    """Return the features of the first record, which become the bands; a mask is none."""
    names = list(infer_schema(folder / export.shards[0], sample=1))
    return names[:-1] if last_band_alpha else names


def _misfit(
    export: ExportNames,
    folder: Path,
    mixer: str | None,
    features: Sequence[str],
    bands: Sequence[str] | None,
) -> str:
    """Say why records and mixer or bands do not go together, "" where they do."""
    where = f"{folder}: {export.prefix}"
    if "patch_index" in features:
        return (
            f"{where}: records carry patch_index, which Earth Engine takes for a band. Write all "
            "patches in the order of the export, without it"
        )
    if bands is not None and len(bands) != len(features):
        return (
            f"{where}: {len(bands)} band names for the {len(features)} features "
            f"{', '.join(features)}"
        )
    held = sum(RecordFile(folder / name).count for name in export.shards)
    expected = read_mixer(folder / str(mixer)).total_patches
    if held != expected:
        return f"{where}: {mixer} says {expected} patches, the files hold {held}"
    return ""


def _problem(export: ExportNames, mixer: str | None, names: Sequence[str], folder: str) -> str:
    """Say what keeps a set of files from being uploaded, "" where nothing does."""
    where = f"{folder}: {export.prefix}"
    if mixer is None:
        return f"{where} has no mixer; copy that of its export here and give it with mixer="
    if mixer not in names:
        return f"{where}: the mixer {mixer} is not in the folder; copy it there"
    if export.missing:
        return f"{where}: shard {', '.join(f'{n:05d}' for n in export.missing)} is missing"
    if export.repeated:
        return f"{where}: shard {export.repeated[0]:05d} is there more than once"
    return ""
