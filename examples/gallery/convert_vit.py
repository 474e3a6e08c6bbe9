"""Converting a vision transformer.

A transformer trained with softmax attention keeps its accuracy when its attention is replaced by calibrated random
features, without further training; features that do not look at the data lose most of it.
"""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from torch import Tensor, nn

from bochner import mechanism
from bochner.nn import calibrate, replace_attention


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Accuracy against rows of W, for three mechanisms, next to softmax."""
    torch.manual_seed(0)
    tokens, labels = digits()
    model = Classifier()
    train(model, tokens[:1400], labels[:1400], 15 if smoke else 600)
    test = tokens[1400:], labels[1400:]
    exact = accuracy(model, *test)
    rows = (8,) if smoke else (4, 8, 16, 32, 64)
    found = {name: np.zeros(len(rows)) for name in ("FAVOR+", "FAVOR++", "calibrated")}
    draws = 1 if smoke else 5
    for k, m in enumerate(rows):
        plans = calibrate(model, [tokens[:64]], n_projections=m)
        specs = {"FAVOR+": mechanism("favor+", n_projections=m), "FAVOR++": mechanism("favor++", n_projections=m)}
        for name, spec in {**specs, "calibrated": plans}.items():
            for seed in range(draws):
                generator = torch.Generator().manual_seed(seed)
                converted = replace_attention(model, spec, copy=True, generator=generator)
                found[name][k] += accuracy(converted, *test) / draws
    figure = Figure(figsize=(6.5, 4.0), layout="constrained")
    ax = figure.subplots()
    ax.axhline(exact, color="black", linestyle="--", label="softmax")
    for name, values in found.items():
        ax.plot(rows, values, "o-", label=name)
    ax.set(xscale="log", xlabel="rows of W per head", ylabel="accuracy on test images", ylim=(0, 1.02))
    ax.set_xticks(rows, rows)
    ax.minorticks_off()
    ax.legend()
    numbers = ", ".join(f"{name} {values[-1]:.3f}" for name, values in found.items())
    return (
        figure,
        f"Accuracy with {rows[-1]} rows, without training after the conversion: {numbers}; softmax {exact:.3f}.",
    )


class Classifier(nn.Module):
    """A transformer over the 16 patches of 2 x 2 pixels of an image of 8 x 8."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.positions = nn.Linear(4, 64), nn.Parameter(0.1 * torch.randn(16, 64))
        layer = nn.TransformerEncoderLayer(64, 2, 128, dropout=0.0, batch_first=True)
        self.encoder, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(64, 10)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of the ten digits."""
        return self.head(self.encoder(self.embed(tokens) + self.positions).mean(dim=1))


def digits() -> tuple[Tensor, Tensor]:
    """Images as 16 patches each, in random order, and their labels."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.data))
    images = torch.tensor(data.images[order] / 8 - 1, dtype=torch.float32)
    patches = images.reshape(-1, 4, 2, 4, 2).transpose(2, 3).reshape(-1, 16, 4)
    return patches, torch.tensor(data.target[order])


def train(model: nn.Module, tokens: Tensor, labels: Tensor, steps: int) -> None:
    """Adam on batches of 64."""
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for step in range(steps):
        batch = torch.arange(64 * step, 64 * step + 64) % len(tokens)
        loss = nn.functional.cross_entropy(model(tokens[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()


def accuracy(model: nn.Module, tokens: Tensor, labels: Tensor) -> float:
    """Share of correct predictions."""
    with torch.no_grad():
        return float((model(tokens).argmax(dim=1) == labels).float().mean())


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("convert_vit.png", dpi=120)
    print(caption)
