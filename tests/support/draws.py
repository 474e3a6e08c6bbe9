"""Squared errors of Gram matrices over independent draws."""

from __future__ import annotations

import numpy as np


def squared_errors(spec, X, Y, n_draws, first_seed=0):
    """Squared errors of every entry, (n_draws, n, p); each draw has its own seed."""
    exact = spec.kernel(X, Y)
    seeds = range(first_seed, first_seed + n_draws)
    return np.array([(spec.draw(X.shape[1], rng=seed).gram(X, Y) - exact) ** 2 for seed in seeds])
