"""Nearest neighbours by angle: hashes from fast rotations, and exact re-ranking of candidates."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .. import catalogue
from .._validation import check_count, check_flag
from ..linalg.engine import CHUNK_BYTES, for_each_tile, rows_per_tile
from ..projections import Projection
from ._estimator import RowEstimator, all_or_nothing
from ._feature_parameters import FeatureParameters, draw_features

_QUERIES_AT_ONCE = 16  # queries of a tile: each reads candidates of its own, so that more would not share work
_DEFAULT_BITS = 256  # docs/learn.md measures the recall of these
_MANY = 1 << 20  # more rows than a block has


class AngularHash(ClassNamePrefixFeaturesOutMixin, TransformerMixin, RowEstimator):
    r"""Approximate nearest neighbours by angle, from hashes of randomly rotated rows.

    Use it to search many vectors by cosine similarity, such as embeddings.  Codes are short and rotations are fast; the
    candidates that the codes find are re-ranked by their exact angles.

    Parameters
    ----------
    n_bits : int or None
        Length of sign hashes; 256 if neither it nor ``n_tables`` is given.
    n_tables : int or None
        Number of cross-polytope hashes, in place of sign hashes.
    projection : Projection or str, default "unpadded-hadamard"
        Law of the directions.  Cross-polytope hashes need one with a rotation.
    n_neighbors : int, default 5
        Neighbours that `kneighbors` returns by default.
    n_candidates : int, default 200
        Candidates whose exact angles are computed, per query.
    n_probes : int, default 4
        Buckets probed per query and table.
    random_state : int, RandomState, Generator or None
        Source of randomness.
    n_jobs : int or None
        Number of threads; None for all that the process may use.  The result does not depend on it.

    Attributes
    ----------
    features_ : FeatureMap
        The drawn directions.
    codes_ : array, ``(n, _)``
        Codes of the rows of `fit`.
    n_features_in_ : int
        Number of columns of the data.

    Notes
    -----
    With directions :math:`w_i` a *sign hash* has the bits :math:`[w_i\cdot x > 0]`.  Two rows at the angle :math:`\theta`
    differ in each bit with probability :math:`\theta/\pi`, so the Hamming distance ranks them; orthogonal directions rank
    better than independent ones.  Directions that are orthogonal in a padded space only, such as ``"hadamard"`` for d =
    768, rank in between, which is why the default rotation does not pad.

    A *cross-polytope hash* is the vertex :math:`\pm e_i` that is nearest to the rotated row: 2d buckets per table.
    Candidates are the rows that share the most buckets with the ``n_probes`` nearest vertices of the query.

    Candidates with equal scores are all kept, so that there may be more than ``n_candidates``.  If fewer rows than
    neighbours share a bucket with a query, it is compared with all rows.  A zero row has a cosine of zero with every row.

    References
    ----------
    OMC Section 1, andoni2015.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.learn import AngularHash
    >>> X = np.random.default_rng(0).standard_normal((1000, 64))
    >>> index = AngularHash(n_bits=128, random_state=0).fit(X)
    >>> index.transform(X).shape                                   # 128 bits in 16 bytes
    (1000, 16)
    >>> distances, neighbors = index.kneighbors(X[:3] + 0.01, 1)
    >>> neighbors[:, 0].tolist()
    [0, 1, 2]
    """

    def __init__(
        self,
        n_bits: int | None = None,
        n_tables: int | None = None,
        *,
        projection: Any = "unpadded-hadamard",
        n_neighbors: int = 5,
        n_candidates: int = 200,
        n_probes: int = 4,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.n_tables = n_tables
        self.projection = projection
        self.n_neighbors = n_neighbors
        self.n_candidates = n_candidates
        self.n_probes = n_probes
        self.random_state = random_state
        self.n_jobs = n_jobs

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> AngularHash:
        """Draw the directions, and hash the rows that will be searched.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Rows; they are stored densely, with unit norms.
        y : ignored
            Present for API consistency.

        Returns
        -------
        self
        """
        for name in ("n_neighbors", "n_candidates", "n_probes"):
            check_count("AngularHash", name, getattr(self, name))
        rows = self._rows(X, reset=True)
        projection, self._n_tables, width = self._directions(rows.shape[1])
        parameters = FeatureParameters("linear", projection=projection, n_components=width)
        with self._threads():
            self.features_ = draw_features(parameters, rows, self.random_state, symmetric=True)
            dense = rows.gathered().X
            self.codes_, self._unit_rows = self._encoded(dense), _normalized(dense)
        self._index = (
            _buckets(self.codes_, 2 * width // self._n_tables) if self._n_tables else [_words(self.codes_).T.copy()]
        )
        return self

    def transform(self, X: Any) -> Any:
        """Return the codes of rows X.

        Parameters
        ----------
        X : array or CSR matrix (n, d)
            Rows.

        Returns
        -------
        array
            uint8 of shape ``(n, ceil(n_bits / 8))``, eight bits per byte, or the numbers of vertices, int32 of shape
            ``(n, n_tables)``.
        """
        rows = self._rows(X)
        with self._threads():
            return rows.map(self._encoded, (self._n_features_out,), self.codes_.dtype)

    def kneighbors(self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True) -> Any:
        """Find rows of `fit` at small angles to the rows of X.

        Parameters
        ----------
        X : array or CSR matrix (n, d), optional
            Queries; without them the rows of `fit`, which are then not their own neighbours.
        n_neighbors : int, optional
            How many; the estimator's parameter by default.
        return_distance : bool, default True
            Whether distances are returned too.

        Returns
        -------
        distances : array, ``(n, n_neighbors)``
            One minus the cosine, in increasing order; only with ``return_distance``.
        neighbors : int64 array, ``(n, n_neighbors)``
            Numbers of the rows; of equally distant ones the lower number comes first.
        """
        check_is_fitted(self)
        check_flag("AngularHash", "return_distance", return_distance)
        k = check_count("AngularHash", "n_neighbors", self.n_neighbors if n_neighbors is None else n_neighbors)
        own, n = X is None, len(self._unit_rows)
        if k > n - own:
            which = "other rows" if own else "rows of fit"
            raise ValueError(f"AngularHash: n_neighbors must be at most {n - own}, the number of {which}, got {k}.")
        queries = self._unit_rows if own else _normalized(self._rows(X).gathered().X)
        distances, neighbors = np.empty((len(queries), k)), np.empty((len(queries), k), np.int64)

        def search(start: int, stop: int) -> None:
            for i, (scores, limit) in enumerate(self._scored(queries[start:stop]), start):
                candidates = _best(scores, max(k + own, self.n_candidates), limit)
                candidates = candidates[candidates != i] if own else candidates
                if len(candidates) < k:
                    candidates = np.delete(np.arange(n), i) if own else np.arange(n)
                near = 1 - self._unit_rows[candidates] @ queries[i].astype(np.float64)
                order = np.lexsort((candidates, near))[:k]
                distances[i], neighbors[i] = np.maximum(near[order], 0), candidates[order]

        with self._threads():
            for_each_tile(len(queries), _QUERIES_AT_ONCE, search)
        return (distances, neighbors) if return_distance else neighbors

    def _directions(self, d: int) -> tuple[Projection, int, int]:
        """The projection, the number of tables (zero for sign hashes), and the number of directions."""
        projection = catalogue.as_projection("AngularHash", self.projection)
        if self.n_tables is None:
            bits = _DEFAULT_BITS if self.n_bits is None else self.n_bits
            return projection, 0, check_count("AngularHash", "n_bits", bits)
        if self.n_bits is not None:
            raise ValueError(
                "AngularHash: pass n_bits for sign hashes or n_tables for cross-polytope hashes, not both."
            )
        n_tables = check_count("AngularHash", "n_tables", self.n_tables)
        if not (hasattr(projection, "rotation") and hasattr(projection, "radii")):
            raise ValueError(
                f"AngularHash: n_tables needs a projection with a rotation, such as Orthogonal(), got {projection!r}."
            )
        fixed: Any = projection  # of which the nearest vertex is asked for, not the one with the longest row
        projection = dataclasses.replace(fixed, radii="fixed")
        return projection, n_tables, n_tables * projection.block_sizes(d, _MANY)[0]

    def _encoded(self, X: np.ndarray) -> np.ndarray:
        """Codes of rows, some rows at a time."""
        step = rows_per_tile(X.dtype.itemsize * self.features_.n_features_out, CHUNK_BYTES)
        tiles = (self.features_.queries(X[i : i + step]) for i in range(0, len(X), step))  # one at a time in memory
        if not self._n_tables:
            return np.concatenate([np.packbits(tile > 0, axis=1) for tile in tiles])
        return np.concatenate([_nearest_vertices(self._by_table(tile), 1)[..., 0] for tile in tiles])

    def _by_table(self, projected: np.ndarray) -> np.ndarray:
        return projected.reshape(len(projected), self._n_tables, -1)

    def _scored(self, queries: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
        """For each query, a score of every row, low if its code is near, and the highest score that speaks for a row."""
        if not self._n_tables:
            (words,) = self._index
            for code in _words(self._encoded(queries)):
                yield _hamming(words, code), 64 * len(words)
            return
        order, offsets = self._index
        vertices = _nearest_vertices(self._by_table(self.features_.queries(queries)), self.n_probes)
        for probes in vertices:
            yield self._n_tables - _votes(order, offsets, probes), self._n_tables - 1

    @property
    def _n_features_out(self) -> int:
        return int(self.codes_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def _normalized(X: np.ndarray) -> np.ndarray:
    """Rows of unit norm; zero rows as they are.  Scaled by their largest entries first, whose squares might overflow."""
    largest = np.abs(X).max(axis=1, keepdims=True)
    X = X / np.where(largest > 0, largest, 1)
    return np.asarray(X / np.where(largest > 0, np.linalg.norm(X, axis=1, keepdims=True), 1))


def _words(codes: np.ndarray) -> np.ndarray:
    """Packed bits in words of 64, (n, n_words), zeros at the end."""
    bytes_ = np.zeros((len(codes), -(-codes.shape[1] // 8) * 8), np.uint8)
    bytes_[:, : codes.shape[1]] = codes
    return bytes_.view(np.uint64)


def _hamming(words: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Hamming distances of a code to all codes, whose words are rows here: (n,)."""
    total = np.zeros(words.shape[1], np.int32)
    for line, word in zip(words, code, strict=True):
        total += np.bitwise_count(line ^ word)
    return total


def _nearest_vertices(Y: np.ndarray, n_probes: int) -> np.ndarray:
    """The vertices of the cross-polytope nearest to vectors (..., r), nearest first: i for e_i, r + i for -e_i, int32."""
    r = Y.shape[-1]
    size = np.abs(Y)
    if n_probes == 1:
        axes = size.argmax(axis=-1)[..., None]
    else:
        axes = np.argsort(-size, axis=-1, kind="stable")[..., :n_probes]
    return np.asarray(axes + r * (np.take_along_axis(Y, axes, axis=-1) < 0), np.int32)


def _buckets(codes: np.ndarray, n_vertices: int) -> list[np.ndarray]:
    """Rows sorted by their code, for each table, (n_tables, n), and where each code begins, (n_tables, n_vertices + 1)."""
    order = np.argsort(codes, axis=0, kind="stable").T.astype(np.int32)
    first = np.arange(n_vertices + 1)
    offsets = [np.searchsorted(column[own], first) for column, own in zip(codes.T, order, strict=True)]
    return [np.ascontiguousarray(order), np.array(offsets)]


def _votes(order: np.ndarray, offsets: np.ndarray, probes: np.ndarray) -> np.ndarray:
    """Tables in which each row lies in one of the buckets that are looked at: (n,)."""
    found = [
        order[t, offsets[t, vertex] : offsets[t, vertex + 1]]
        for t, vertices in enumerate(probes.tolist())
        for vertex in vertices
    ]
    return np.bincount(np.concatenate(found), minlength=order.shape[1])


def _best(scores: np.ndarray, n: int, limit: int) -> np.ndarray:
    """Rows with the n lowest scores and those that tie with the last of them, none above the limit."""
    threshold = int(np.searchsorted(np.bincount(scores).cumsum(), n))
    return np.flatnonzero(scores <= min(threshold, limit))
