"""A small vision transformer on MNIST, with softmax attention and with random features.

Without MNIST in the folder that BOCHNER_DATA names, the 8 x 8 digits of scikit-learn take its place.

    python examples/attention/vit_mnist.py --attention all --profile smoke
"""

from __future__ import annotations

import argparse
import math
import os

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from training import Profile, command_line, compare

from bochner import datasets

PROFILES = {
    "smoke": Profile(steps=100, batch=64, width=32, layers=2, heads=2, n_projections=32),
    "full": Profile(steps=400, batch=64, width=64, layers=3, heads=4, n_projections=64),
}


class ViT(nn.Module):
    """Patches as tokens, an encoder, and the mean of its output."""

    def __init__(self, side: int, patch: int, profile: Profile) -> None:
        super().__init__()
        self.patch, d = patch, profile.width
        self.embedding = nn.Linear(patch**2, d)
        self.positions = nn.Parameter(0.3 * torch.randn((side // patch) ** 2, d))
        layer = nn.TransformerEncoderLayer(d, profile.heads, 2 * d, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, profile.layers, nn.LayerNorm(d), enable_nested_tensor=False)
        self.head = nn.Linear(d, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of images (batch, side, side)."""
        patches = F.unfold(images[:, None], self.patch, stride=self.patch).mT
        return self.head(self.encoder(self.embedding(patches) + self.positions).mean(1))


class Images:
    """Images of ten classes, in a part for training and one for tests."""

    measure = "accuracy"

    def __init__(self, profile: Profile, n_test: int, seed: int) -> None:
        name = "mnist" if os.environ.get("BOCHNER_DATA") else "digits"
        data = datasets.load(name)
        self.side, self.patch = math.isqrt(data.X.shape[1]), 4 if name == "mnist" else 2
        self.batch, self.seed = profile.batch, seed
        order = np.random.default_rng(seed).permutation(len(data.X))
        images = torch.tensor(data.X[order] / data.X.max(), dtype=torch.float32).view(-1, self.side, self.side)
        labels = torch.tensor(data.y[order].astype(np.int64))
        self.test, self.train = (images[:n_test], labels[:n_test]), (images[n_test:], labels[n_test:])
        self.data = f"{name}, {len(self.train[0])} images and {n_test} for tests"

    def loss(self, model: nn.Module, step: int) -> Tensor:
        """Cross-entropy on random images."""
        images, labels = self.train
        generator = torch.Generator().manual_seed(10_000 * self.seed + step)
        chosen = torch.randint(len(images), (self.batch,), generator=generator)
        return F.cross_entropy(model(images[chosen]), labels[chosen])

    @torch.no_grad()
    def evaluate(self, model: nn.Module) -> float:
        """Accuracy on the test part."""
        model.eval()
        found = torch.cat([model(part).argmax(-1) for part in self.test[0].split(500)])
        return float((found == self.test[1]).float().mean())

    def example(self) -> Tensor:
        """Some images of the test part."""
        return self.test[0][:16]


def main(arguments: argparse.Namespace) -> None:
    """Compare on the images that there are."""
    profile = PROFILES[arguments.profile]
    images = Images(profile, 400 if arguments.profile == "smoke" else 2000, arguments.seed)
    torch.manual_seed(arguments.seed)
    compare(ViT(images.side, images.patch, profile), images, profile, arguments)


if __name__ == "__main__":
    main(command_line(__doc__))
