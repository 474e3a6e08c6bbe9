"""Small sampled-softmax losses, batches for them, and the law of their negatives."""

from __future__ import annotations

import torch

from bochner import Approximation, kernels, maps
from bochner.nn import SampledSoftmax

MAPS = {
    "trigonometric": maps.Trigonometric(),
    "positive": maps.Positive(),
    "optimal": maps.OptimalPositive(),
    "angular": maps.AngularHybrid(4),
    "gaussian hybrid": maps.GaussianHybrid(4),
}
N, D = 23, 6


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def module(kind="positive", *, n=N, seed=0, m=16, **options):
    """A loss over n classes with m rows of a map."""
    options = {"n_samples": 8, "dtype": torch.float64, "generator": generator(seed)} | options
    return SampledSoftmax(D, n, spec=Approximation(kernels.Softmax(), MAPS[kind], n_projections=m), **options)


def batch(rows=5, n=N, seed=1, dtype=torch.float64, norm=1.0):
    """Queries and their true classes."""
    h = norm * torch.randn(rows, D, dtype=dtype, generator=generator(seed))
    return h, torch.randint(n, (rows,), generator=generator(seed))


def proposal(loss, h, targets=None):
    """Probabilities of all classes under the law of the negatives."""
    return loss.log_proposal(h, torch.arange(loss.n_classes).expand(len(h), -1), targets).exp()
