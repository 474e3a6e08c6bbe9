"""Negatives for a softmax over many classes.

A classifier with many classes is trained on a few sampled negatives per step, and the closer their law is to the softmax,
the closer the sampled loss is to the full one. Random features draw negatives whose law approaches the softmax as features
are added, at a cost per sample that grows with the logarithm of the number of classes; very few features are no better
than uniform negatives, and neither are these numbers of features where the vectors are long.
"""

from __future__ import annotations

import torch
from matplotlib.figure import Figure
from torch import Tensor

from bochner import mechanism
from bochner.nn import SampledSoftmax

WIDTH, NEGATIVES = 16, 20
MECHANISMS = {"favor+": "FAVOR+", "favor++": "FAVOR++", "dense": "dense"}


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Divergence of the law of the negatives from the softmax, and bias of the sampled loss, against rows of W."""
    classes, rows = (200, (8, 32)) if smoke else (2000, (8, 32, 128, 512, 1024))
    generator = torch.Generator().manual_seed(0)
    scales = torch.linspace(0.7, 0.1, WIDTH)
    vectors, queries = (torch.randn(n, WIDTH, generator=generator) * scales for n in (classes, 64))
    targets = torch.randint(classes, (64,), generator=generator)
    uniform = measured(SampledSoftmax(WIDTH, classes, NEGATIVES, sampler="uniform"), vectors, queries, targets)
    found = {
        title: [
            measured(SampledSoftmax(WIDTH, classes, NEGATIVES, spec=mechanism(name, n_projections=m), generator=generator),
                     vectors, queries, targets)
            for m in rows
        ]
        for name, title in MECHANISMS.items()
    }  # fmt: skip
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for k, (ax, label) in enumerate(zip(axes, ("divergence from the softmax", "bias of the loss"), strict=True)):
        ax.axhline(uniform[k], color="black", linestyle="--", label="uniform")
        for title, values in found.items():
            ax.plot(rows, [value[k] for value in values], "o-", label=title)
        ax.set(xscale="log", xlabel="rows of W", title=label)
        ax.set_xticks(rows, rows)
        ax.minorticks_off()
    axes[0].legend(title="negatives by")
    numbers = ", ".join(f"{title} {values[-1][0]:.2f}" for title, values in found.items())
    return figure, (
        f"Divergence of the law of the negatives from the softmax, {classes:,} classes, {rows[-1]} rows: {numbers}; "
        f"uniform {uniform[0]:.2f}."
    )


def measured(loss: SampledSoftmax, vectors: Tensor, queries: Tensor, targets: Tensor) -> tuple[float, float]:
    """Mean divergence of softmax from the law of the negatives, and the sampled minus the full loss over 20 samples."""
    with torch.no_grad():
        loss.weight.copy_(vectors)
        loss.rebuild()
        every = torch.arange(len(vectors)).expand(len(queries), -1)
        exact = torch.log_softmax((queries @ vectors.T).scatter(1, targets[:, None], -torch.inf), dim=1)
        terms = exact.exp() * (exact - loss.log_proposal(queries, every, targets=targets))
        sampled = torch.stack([loss(queries, targets) for _ in range(20)]).mean()
        return float(terms.nan_to_num(0).sum(dim=1).mean()), float(sampled - loss.full_loss(queries, targets))


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("sampled_softmax.png", dpi=120)
    print(caption)
