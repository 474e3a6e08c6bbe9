"""A small vision transformer on MNIST: trained with softmax attention, converted to random features, and trained on.

Without MNIST in the folder that BOCHNER_DATA names, the 8 x 8 digits of scikit-learn take its place.

    python vit_mnist.py --profile smoke --report
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F

from bochner import mechanism
from bochner.nn import attention_report, replace_attention

MECHANISMS = ("favor+", "favor++", "simrf-performer")
PROFILES = {"smoke": (100, 32, 2, 2, 32), "full": (400, 64, 3, 4, 64)}
"""Steps of training, width, layers, heads, and rows of W."""
BATCH, RATE, RATE_OF_UPTRAINING = 64, 3e-3, 3e-4


class VisionTransformer(nn.Module):
    """Patches as tokens, an encoder, and the mean of its output."""

    def __init__(self, side: int, width: int, layers: int, heads: int) -> None:
        super().__init__()
        self.patch = 2 if side == 8 else 4
        layer = nn.TransformerEncoderLayer(
            width, heads, 2 * width, dropout=0.0, batch_first=True, norm_first=True
        )
        self.embedding = nn.Linear(self.patch**2, width)
        self.positions = nn.Parameter(0.3 * torch.randn((side // self.patch) ** 2, width))
        self.encoder = nn.TransformerEncoder(
            layer, layers, nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of images (batch, side, side)."""
        patches = F.unfold(images[:, None], self.patch, stride=self.patch).mT
        return self.head(self.encoder(self.embedding(patches) + self.positions).mean(1))


def images(smoke: bool) -> tuple[str, Tensor, Tensor]:
    """Images with values up to 1 and their classes, in random order."""
    folder = os.environ.get("BOCHNER_DATA")
    if folder and not smoke:
        with np.load(Path(folder) / "mnist.npz") as arrays:
            name, X, y = "MNIST", arrays["X"], arrays["y"]
    else:
        name, (X, y) = "digits", load_digits(return_X_y=True)
    order, side = np.random.default_rng(0).permutation(len(X)), round(X.shape[1] ** 0.5)
    X = torch.tensor(X[order] / X.max(), dtype=torch.float32).view(-1, side, side)
    return name, X, torch.tensor(y[order].astype(np.int64))


def train(model: nn.Module, X: Tensor, y: Tensor, steps: int, rate: float) -> float:
    """Train with Adam and one cycle of the learning rate; returns seconds per step."""
    optimizer, start = torch.optim.Adam(model.parameters(), rate), time.perf_counter()
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=max(steps, 6), pct_start=0.2
    )
    model.train()
    for _ in range(steps):
        chosen = torch.randint(len(X), (BATCH,))
        optimizer.zero_grad()
        F.cross_entropy(model(X[chosen]), y[chosen]).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    return (time.perf_counter() - start) / max(steps, 1)


@torch.no_grad()
def accuracy(model: nn.Module, X: Tensor, y: Tensor) -> float:
    """Share of images whose class is found."""
    model.eval()
    return float(
        (torch.cat([model(part).argmax(-1) for part in X.split(500)]) == y).double().mean()
    )


def main(arguments: argparse.Namespace) -> None:
    """Train, convert with each mechanism, train on, and print a table."""
    torch.manual_seed(arguments.seed)
    steps, *shape, n_projections = PROFILES[arguments.profile]
    steps = steps if arguments.steps is None else arguments.steps
    name, X, y = images(arguments.profile == "smoke")
    test = 2000 if len(X) > 10_000 else 400
    test_images, rest = (X[:test], y[:test]), (X[test:], y[test:])
    softmax = VisionTransformer(X.shape[1], *shape)
    seconds = train(softmax, *rest, steps, RATE)
    print(
        f"data: {name}, {len(rest[0])} images and {test} for tests; {steps} steps of {BATCH}\n"
    )
    print(f"{'attention':18}{'accuracy':>10}{'trained on':>12}{'time per step':>15}")
    print(
        f"{'softmax':18}{accuracy(softmax, *test_images):10.3f}{'':12}{1e3 * seconds:12.1f} ms"
    )
    for mechanism_name in MECHANISMS:
        spec = mechanism(mechanism_name, n_projections=n_projections)
        model = replace_attention(
            softmax, spec, copy=True, generator=torch.Generator().manual_seed(arguments.seed)
        )
        converted = accuracy(model, *test_images)
        seconds = train(model, *rest, arguments.uptrain, RATE_OF_UPTRAINING)
        print(
            f"{mechanism_name:18}{converted:10.3f}{accuracy(model, *test_images):12.3f}{1e3 * seconds:12.1f} ms"
        )
    if arguments.report:
        named = {name: name for name in ("favor+", "favor++")}
        print(f"\n{attention_report(softmax, [X[:8], X[8:16]], mechanisms=named)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--profile", choices=tuple(PROFILES), default="full", help="seconds, or minutes"
    )
    parser.add_argument("--steps", type=int, help="training steps, in place of the profile's")
    parser.add_argument(
        "--uptrain",
        type=int,
        default=60,
        help="steps with features after the conversion (default 60)",
    )
    parser.add_argument(
        "--report",
        action="store_true",
        help="also print what converting the softmax model loses and gains",
    )
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
