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


def test_pieces_join_the_most_frequent_neighbours():
    from bochner_lab.papers._corpora import UNKNOWN, spelling

    counts = {"low": 90, "lowest": 60, "new": 100, "newest": 70}
    letters = spelling(counts, ["slow"], 0)
    assert letters["low"] == ["_l", "o", "w"] and letters["slow"] == [UNKNOWN, UNKNOWN, "o", "w"]
    assert len({piece for found in letters.values() for piece in found}) == 8  # _l _n e o s t w and the unknown
    found = spelling(counts, ["slow"], 13)  # five pairs: _n e, _ne w, _l o, _lo w and one of newest and lowest
    assert found["new"] == ["_new"] and found["low"] == ["_low"]
    assert all("".join(one) == "_" + word for word, one in found.items() if word in counts)


def test_a_model_without_queries_is_the_table_of_counts():
    torch = pytest.importorskip("torch")
    from bochner_lab.papers._word_counts import bigram_table, losses_of_counts
    from bochner_lab.papers.hrf._language_model import LanguageModel

    text = np.random.default_rng(0).integers(5, size=20 * 50 * 2 + 1)
    table = bigram_table(text, 5)
    np.testing.assert_allclose(table.sum(axis=1), 1)
    model = LanguageModel(5, 4, prior=torch.as_tensor(np.log(table), dtype=torch.float32))
    torch.nn.init.zeros_(model.keys)
    assert model.loss(text) == pytest.approx(losses_of_counts(text, text, 5)["bigram"], abs=1e-6)
