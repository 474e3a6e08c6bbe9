"""Distances between distributions over classes, against SciPy, and the text of the language models."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bochner_lab.papers.hrf._softmax_distributions import distances


def test_distances_agree_with_scipy():
    rng = np.random.default_rng(0)
    exact, estimate = rng.dirichlet(np.ones(30), size=4), rng.standard_normal((4, 30))
    wasserstein, kolmogorov, negative = distances(estimate, exact)
    at, clipped = np.arange(30), np.maximum(estimate, 0)
    pairs = list(zip(exact, clipped, strict=True))
    assert wasserstein == pytest.approx(np.mean([stats.wasserstein_distance(at, at, p, q) for p, q in pairs]))
    gaps = [np.abs(np.cumsum(p) - np.cumsum(q / q.sum())).max() for p, q in pairs]
    assert kolmogorov == pytest.approx(np.mean(gaps))
    assert negative == (estimate < 0).mean()


def test_rows_without_positive_estimates_are_uniform():
    wasserstein, kolmogorov, negative = distances(-np.ones((1, 4)), np.full((1, 4), 0.25))
    assert (wasserstein, kolmogorov, negative) == (0.0, 0.0, 1.0)


def test_windows_continue_each_stream_with_the_next_words():
    pytest.importorskip("torch")
    from bochner_lab.papers.hrf._language_model import windows

    stream = windows(np.arange(25), batch=2, length=5)
    X, Y = next(stream)
    assert X.T.tolist() == [[0, 1, 2, 3, 4], [12, 13, 14, 15, 16]]
    assert (Y - X == 1).all()
    assert next(stream)[0][0].tolist() == [5, 17]
    assert next(stream)[0][0].tolist() == [0, 12]  # twelve steps hold two windows
