"""Train a small U-Net on patches of a real Sentinel-2 scene and bring the map back.

    pip install 'tfrio[torch,demo,xarray]'
    python examples/train_unet.py unet-out

The scene comes with the package spyndex. Its georeference is nominal. The label is made from the
scene itself (three classes of NDVI), so the accuracy says that the road works, no more.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import rasterio
import torch
from torch import nn
from torch.nn import functional

import tfrio
from tfrio.cli.demo.scene import load_scene, write_scene
from tfrio.torch import predictions

CLASSES = ("masked", "bare or water", "sparse", "dense")
BANDS = ["B2", "B3", "B4", "B8"]


class UNet(nn.Module):
    """Two levels down, two levels up; height and width must be multiples of 4."""

    def __init__(self, bands: int, classes: int, width: int = 8) -> None:
        super().__init__()
        self.first, self.second = self.block(bands, width), self.block(width, 2 * width)
        self.bottom = self.block(2 * width, 4 * width)
        self.up_second = self.block(6 * width, 2 * width)
        self.up_first = self.block(3 * width, width)
        self.head = nn.Conv2d(width, classes, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Module:
        """Return two normalised convolutions that keep height and width."""
        layers: list[nn.Module] = []
        for channels in (inputs, outputs):
            layers.append(nn.Conv2d(channels, outputs, 3, padding=1, bias=False))
            layers += [nn.BatchNorm2d(outputs), nn.ReLU()]
        return nn.Sequential(*layers)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        """Return logits (rows, classes, height, width)."""
        first = self.first(image)
        second = self.second(functional.max_pool2d(first, 2))
        bottom = self.bottom(functional.max_pool2d(second, 2))
        up = self.up_second(torch.cat([functional.interpolate(bottom, scale_factor=2), second], 1))
        up = self.up_first(torch.cat([functional.interpolate(up, scale_factor=2), first], 1))
        logits: torch.Tensor = self.head(up)
        return logits


def export(folder: Path) -> str:
    """Write scene and label as GeoTIFFs, then as patches; return the prefix of the export."""
    scene = load_scene()
    red, infrared = scene[2].astype(np.float32), scene[3].astype(np.float32)
    ndvi = (infrared - red) / np.maximum(infrared + red, 1)
    label = np.where(scene[0] == 0, 0, 1 + np.digitize(ndvi, [0.3, 0.6])).astype(np.uint16)
    write_scene(folder / "scene.tif", scene)
    with rasterio.open(folder / "scene.tif") as file:
        profile = {**file.profile, "count": 1}
    with rasterio.open(folder / "label.tif", "w", **profile) as file:
        file.write(label, 1)
        file.descriptions = ("label",)
    prefix = str(folder / "export" / "scene")
    report = tfrio.geo.export_image(
        [folder / "scene.tif", folder / "label.tif"],
        prefix,
        patch=(36, 28),
        kernel=(12, 8),
        statistics=True,
        overwrite=True,
    )
    print(report)
    return prefix


def train(prefix: str, epochs: int) -> UNet:
    """Train on 80 % of the patches, report the accuracy on the others."""
    patches = tfrio.geo.open_export(prefix).tfrio.patches(
        bands=BANDS, label="label", normalize=True, batch_size=4, shuffle=True, seed=1
    )
    learn, check = patches.split([0.8, 0.2], seed=1)
    model = UNet(len(BANDS), len(CLASSES))
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for epoch in range(1, epochs + 1):
        model.train()
        for batch in learn:
            logits = model(batch["image"])
            loss = functional.cross_entropy(logits, batch["label"] * batch["mask"], ignore_index=0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        right = total = 0
        with torch.inference_mode():
            for batch in check:
                hit = model(batch["image"]).argmax(1) == batch["label"]
                right, total = (
                    right + int(hit[batch["mask"]].sum()),
                    total + int(batch["mask"].sum()),
                )
        print(f"epoch {epoch}: {100 * right / total:.1f} % of the pixels held back are right")
    return model


def predict(model: UNet, prefix: str, folder: Path) -> None:
    """Write the predicted classes as TFRecord and place them on the map."""
    model.eval()
    patches = tfrio.geo.open_export(prefix).tfrio.patches(bands=BANDS, normalize=True, batch_size=8)
    results = predictions(lambda image: {"class": model(image).argmax(1)}, patches)
    tfrio.geo.write_predictions(folder / "prediction.tfrecord.gz", results, mixer=prefix)
    report = tfrio.geo.import_image(
        folder / "prediction.tfrecord.gz",
        folder / "map.tif",
        mixer=prefix,
        dtype="uint8",
        nodata=0,
        class_names=CLASSES,
        overwrite=True,
    )
    print(report)


def main(folder: Path, epochs: int = 5) -> None:
    """Walk the whole road."""
    torch.manual_seed(1)
    folder.mkdir(parents=True, exist_ok=True)
    prefix = export(folder)
    predict(train(prefix, epochs), prefix, folder)
    print(f"the map: {folder / 'map.tif'}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "unet-out"))
