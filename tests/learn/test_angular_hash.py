"""Angular hashing: laws of the codes, exact answers with all candidates, recall, and files."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from bochner import threads
from bochner.learn import AngularHash
from bochner.projections import IID, Orthogonal
from bochner.rotations import Haar, Hadamard
from support.checks import check_mean

RNG = np.random.default_rng(0)
X = RNG.standard_normal((300, 20))
QUERIES = X[:40] + 0.3 * RNG.standard_normal((40, 20))


def exact(Q, rows, k):
    """Neighbours by all cosines."""
    unit = [A / np.linalg.norm(A, axis=1, keepdims=True) for A in (Q, rows)]
    distances = 1 - unit[0] @ unit[1].T
    order = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, order, axis=1), order


@pytest.mark.parametrize("options", ({"n_bits": 100}, {"n_tables": 6}), ids=str)
def test_all_candidates_give_the_exact_answer(options):
    index = AngularHash(**options, n_candidates=300, n_probes=32, random_state=0).fit(X)
    distances, neighbors = index.kneighbors(QUERIES, 7)
    expected, order = exact(QUERIES, X, 7)
    np.testing.assert_array_equal(neighbors, order)
    np.testing.assert_allclose(distances, expected, atol=1e-12)
    np.testing.assert_array_equal(index.kneighbors(QUERIES, 7, return_distance=False), order)


@pytest.mark.parametrize("options", ({"n_bits": 64}, {"n_tables": 8}), ids=str)
def test_rows_are_not_their_own_neighbors(options):
    index = AngularHash(**options, n_candidates=300, n_probes=32, random_state=0).fit(X)
    distances, neighbors = index.kneighbors(n_neighbors=3)
    assert not (neighbors == np.arange(300)[:, None]).any()
    np.testing.assert_array_equal(neighbors, exact(X, X, 4)[1][:, 1:])
    assert (distances > 1e-9).all()


def test_bits_differ_with_the_probability_of_the_angle():
    """P(bits differ) = angle/pi, for exactly uniform directions; pairs of different draws are independent."""
    x, y = np.eye(1, 16)[0], np.array([0.5, np.sqrt(0.75), *np.zeros(14)])  # 60 degrees
    differing = []
    for seed in range(300):
        codes = AngularHash(16, projection=Orthogonal(Haar()), random_state=seed).fit([x, y]).codes_
        differing.append(np.unpackbits(codes[0] ^ codes[1]).mean())
    check_mean(differing, 1 / 3, "fraction of differing bits")


def test_cross_polytope_codes_are_nearest_vertices():
    index = AngularHash(n_tables=3, projection=Orthogonal(Hadamard()), random_state=0).fit(X)
    assert index.codes_.shape == (300, 3) and index.codes_.dtype == np.int32
    W = index.features_.queries(np.eye(20)).T.reshape(3, 32, 20)
    np.testing.assert_allclose(np.linalg.norm(np.linalg.norm(W, axis=2), axis=1), np.sqrt(20 / 3), rtol=1e-9)
    vertices = np.concatenate([W, -W], axis=1)  # (3, 64, 20)
    nearest = np.einsum("tvd,nd->ntv", vertices, X).argmax(axis=2)
    np.testing.assert_array_equal(index.codes_, nearest)


@pytest.mark.parametrize("options", ({"n_bits": 30}, {"n_tables": 4}), ids=str)
def test_codes(options):
    index = AngularHash(**options, random_state=0).fit(X)
    codes = index.transform(X)
    np.testing.assert_array_equal(codes, index.codes_)
    np.testing.assert_array_equal(index.transform(sparse.csr_matrix(X)), codes)
    np.testing.assert_array_equal(index.transform(2.0**600 * X), codes)
    assert codes.shape[1] == len(index.get_feature_names_out()) == 4
    np.testing.assert_array_equal(AngularHash(**options, random_state=0).fit_transform(X), codes)
    single = AngularHash(**options, random_state=0).fit(X.astype(np.float32))
    assert (single.codes_ == codes).mean() > 0.99
    again = pickle.loads(pickle.dumps(index))
    np.testing.assert_array_equal(again.transform(QUERIES), index.transform(QUERIES))
    np.testing.assert_array_equal(again.kneighbors(QUERIES)[1], index.kneighbors(QUERIES)[1])


def test_threads_change_nothing():
    index = AngularHash(64, random_state=0, n_candidates=20).fit(X)
    with threads(1):
        one = index.kneighbors(QUERIES)
    with threads(3):
        three = index.kneighbors(QUERIES)
    assert all((a == b).all() for a, b in zip(one, three, strict=True))


@pytest.mark.parametrize("options", ({"n_bits": 256}, {"n_tables": 20}), ids=str)
def test_recall(options):
    """Clustered rows: the near neighbours are found among a twentieth of the rows, with fast rotations as with Haar ones."""
    rng = np.random.default_rng(1)
    rows = np.repeat(rng.standard_normal((200, 64)), 20, axis=0) + 0.5 * rng.standard_normal((4000, 64))
    queries = rows[::40] + 0.2 * rng.standard_normal((100, 64))
    truth = exact(queries, rows, 10)[1]

    def recall(projection):
        index = AngularHash(**options, projection=projection, random_state=0, n_candidates=200).fit(rows)
        found = index.kneighbors(queries, 10, return_distance=False)
        return np.mean([np.isin(t, f).mean() for t, f in zip(truth, found, strict=True)])

    fast, haar = recall("unpadded-hadamard"), recall(Orthogonal(Haar()))
    assert fast > 0.95 and fast > haar - 0.02


def test_few_rows_in_buckets_and_zero_rows():
    rows = np.concatenate([np.zeros((1, 20)), X[:5]])
    index = AngularHash(n_tables=1, n_probes=1, random_state=0).fit(rows)
    distances, neighbors = index.kneighbors(QUERIES, 6)
    assert (np.sort(neighbors, axis=1) == np.arange(6)).all()
    assert (distances[neighbors == 0] == 1).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"n_bits": 8, "n_tables": 2}, "pass n_bits for sign hashes or n_tables for cross-polytope hashes, not both"),
        ({"n_bits": 0}, "n_bits must be an integer of at least 1, got 0"),
        ({"n_tables": 0}, "n_tables must be an integer of at least 1, got 0"),
        ({"n_tables": 2, "projection": IID()}, r"n_tables needs a projection with a rotation, .* got IID\(\)"),
        ({"n_probes": 0}, "n_probes must be an integer of at least 1"),
        ({"n_candidates": 0}, "n_candidates must be an integer of at least 1"),
        ({"projection": 3}, "AngularHash: projection must be a projection such as"),
    ],
)
def test_arguments(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        AngularHash(**options).fit(X)


def test_too_many_neighbors():
    index = AngularHash(8).fit(X[:4])
    with pytest.raises(ValueError, match="n_neighbors must be at most 4, the number of rows of fit, got 5"):
        index.kneighbors(QUERIES, 5)
    with pytest.raises(ValueError, match="n_neighbors must be at most 3, the number of other rows, got 4"):
        index.kneighbors(n_neighbors=4)
