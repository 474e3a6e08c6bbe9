"""
Which negatives for a softmax over many classes?
================================================

A classifier with many classes can be trained on a few sampled negatives per step. The closer
their law is to the softmax, the closer the sampled loss is to the full one. Random features
draw negatives whose law approaches the softmax as features are added; very few features are no
better than uniform negatives.
"""

import matplotlib.pyplot as plt
import torch

from bochner import mechanism
from bochner.nn import SampledSoftmax

width, negatives, classes, rows = 16, 20, 1000, (8, 32, 128, 512)
generator = torch.Generator().manual_seed(0)
scales = torch.linspace(0.7, 0.1, width)
vectors, queries = (torch.randn(n, width, generator=generator) * scales for n in (classes, 64))
targets = torch.randint(classes, (64,), generator=generator)


def measured(loss):
    """Divergence of the softmax from the law of the negatives, and the sampled minus the full loss over 20 samples."""
    with torch.no_grad():
        loss.weight.copy_(vectors)
        loss.rebuild()
        every = torch.arange(classes).expand(len(queries), -1)
        exact = torch.log_softmax(
            (queries @ vectors.T).scatter(1, targets[:, None], -torch.inf), dim=1
        )
        terms = exact.exp() * (exact - loss.log_proposal(queries, every, targets=targets))
        sampled = torch.stack([loss(queries, targets) for _ in range(20)]).mean()
        return float(terms.nan_to_num(0).sum(dim=1).mean()), float(
            sampled - loss.full_loss(queries, targets)
        )


uniform = measured(SampledSoftmax(width, classes, negatives, sampler="uniform"))
found = {}
for name in ("favor+", "favor++", "dense"):
    specs = [mechanism(name, n_projections=m) for m in rows]
    found[name] = [
        measured(SampledSoftmax(width, classes, negatives, spec=s, generator=generator))
        for s in specs
    ]
    print(
        f"{name}, {rows[-1]} rows: divergence {found[name][-1][0]:.2f}; uniform negatives {uniform[0]:.2f}"
    )

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for k, (ax, label) in enumerate(
    zip(axes, ("divergence from the softmax", "bias of the loss"), strict=True)
):
    ax.axhline(uniform[k], color="black", linestyle="--", label="uniform")
    for name, values in found.items():
        ax.plot(rows, [value[k] for value in values], "o-", label=name)
    ax.set(xscale="log", xlabel="rows of W", title=label)
    ax.set_xticks(rows, rows)
    ax.minorticks_off()
axes[0].legend(title="negatives by")
plt.show()
