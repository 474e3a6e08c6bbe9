"""Broken samplers, seen in public code or nearly written here: the common laws must reject every one of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from bochner.projections import IID, Orthogonal, Simplex
from bochner.projections._operator import DenseOperator
from bochner.projections._projection import named_streams
from bochner.radii import Chi
from bochner.rotations import GivensLevel, GivensWalk, Haar, Hadamard, StructuredGivens
from bochner.rotations._drawn_rotation import DrawnStages
from support.projection_laws import (
    check_blocks_are_independent,
    check_dense_equals_apply,
    check_exponential_mean,
    check_normal_law,
    check_orthogonal,
    check_second_moments,
)


@dataclass(frozen=True)
class QRWithoutSignFix(Haar):
    """Q of LAPACK's QR as it comes: four well-known Performer codes do this."""

    def matrices(self, dim, n_blocks, rng):
        return np.linalg.qr(rng.standard_normal((n_blocks, dim, dim)))[0]


@dataclass(frozen=True)
class ChiOfTheWrongDimension(Chi):
    """Lengths chi_d where directions live in the padded dimension."""

    d: int

    def unit_lengths(self, dim, sizes, rng):
        return super().unit_lengths(self.d, sizes, rng)


@dataclass(frozen=True)
class ChiSquaredForChi(Chi):
    """Lengths without the square root."""

    def unit_lengths(self, dim, sizes, rng):
        return super().unit_lengths(dim, sizes, rng) ** 2 / np.sqrt(dim + 2)  # right second moment all the same


@dataclass(frozen=True)
class SharedNorms(Chi):
    """One set of lengths for all blocks, as the public SimRF+ code draws them."""

    def unit_lengths(self, dim, sizes, rng):
        return np.resize(super().unit_lengths(dim, sizes[:1], rng), sum(sizes))


@dataclass(frozen=True)
class OneRotationForAllBlocks(Orthogonal):
    """A stream that is used again: every block has the same directions."""

    def _draw(self, d, m, rng, kernel):
        directions, lengths = named_streams(rng)
        R = self.rotation.sample(d, 1, directions).to_dense()[0]
        radii = Chi().lengths(d, self.block_sizes(d, m), lengths)
        return DenseOperator(self, radii[:, None] * np.resize(R, (m, d)), radii)


class LengthsFromTheDirectionsStream(Orthogonal):
    """One stream for two ingredients: the lengths repeat the numbers of which the directions are made."""

    def _draw(self, d, m, rng, kernel):
        seed = int(np.random.default_rng(rng).integers(2**31)) if isinstance(rng, int) else int(rng.integers(2**31))
        normals = np.random.default_rng(seed).standard_normal((m, d))
        radii = np.linalg.norm(np.random.default_rng(seed).standard_normal((m, d)) + 0.5, axis=1)
        radii *= np.sqrt(d) / np.sqrt(d + d / 4)
        return DenseOperator(self, radii[:, None] * normals / np.linalg.norm(normals, axis=1, keepdims=True), radii)


class OverwritingWalk(GivensWalk):
    """Kac's walk whose second line reads what its first has overwritten, as a public library does."""

    def rows(self, x, blocks, *, back):
        x = np.array(x)
        for i, j, angle in zip(self.first[0], self.second[0], self.angles[0], strict=True):
            x[..., i] = np.cos(angle) * x[..., i] - np.sin(angle) * x[..., j]
            x[..., j] = np.sin(angle) * x[..., i] + np.cos(angle) * x[..., j]
        return x


class ForgottenTranspose(GivensLevel):
    """An adjoint that rotates forward."""

    def rows(self, x, blocks, *, back):
        return super().rows(x, blocks, back=False)


class UniformSGPClaimsToBeExact(StructuredGivens):
    """Uniform angles with the claim of Beta angles."""

    uniform_directions = "axes"


@pytest.mark.parametrize("d", (4, 16))
def test_qr_without_sign_fix_is_rejected(d):
    with pytest.raises(AssertionError, match=r"E exp\(w\.v\)"):
        check_exponential_mean(Orthogonal(QRWithoutSignFix()), d, d, 0)


def test_chi_of_the_wrong_dimension_is_rejected():
    with pytest.raises(AssertionError, match=r"E\(w\.v\)\^2"):
        check_second_moments(Orthogonal(StructuredGivens(), ChiOfTheWrongDimension(5)), 5, 8, 0)


def test_chi_squared_lengths_are_rejected():
    with pytest.raises(AssertionError, match="Kolmogorov-Smirnov"):
        check_normal_law(Orthogonal(radii=ChiSquaredForChi()), 4, 4, 0, n_blocks=20000)


def test_shared_norms_are_rejected():
    with pytest.raises(AssertionError, match="correlation of lengths"):
        check_blocks_are_independent(Simplex(radii=SharedNorms()), 4, 4, 0)


def test_a_reused_rotation_is_rejected():
    with pytest.raises(AssertionError, match="correlation"):
        check_blocks_are_independent(OneRotationForAllBlocks(), 4, 4, 0)


def test_a_shared_stream_is_rejected():
    with pytest.raises(AssertionError, match=r"mean|Kolmogorov"):
        check_exponential_mean(LengthsFromTheDirectionsStream(), 3, 1, 0, n_blocks=20000)


def test_an_overwriting_kac_walk_is_rejected():
    rng = np.random.default_rng(0)
    walk = OverwritingWalk(
        np.zeros((1, 30), np.int32), np.tile(np.arange(1, 4, dtype=np.int32), 10)[None], rng.uniform(0, 6, (1, 30))
    )
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_orthogonal(DrawnStages("Kac", 1, 4, [walk]))


def test_a_forgotten_transpose_is_rejected():
    P = Orthogonal(StructuredGivens(mix=False)).sample(8, 8, 0)
    P.rotation.stages = tuple(ForgottenTranspose(s.level, s.angles) for s in P.rotation.stages)
    P._adjoint_numpy = lambda Z, out: np.copyto(out, P._adjoint_rows(Z))
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check_dense_equals_apply(P)


def test_uniform_angles_that_claim_exactness_are_rejected():
    with pytest.raises(AssertionError, match="Kolmogorov-Smirnov"):
        check_normal_law(Orthogonal(UniformSGPClaimsToBeExact("uniform", mix=False)), 8, 8, 0)


def test_one_hadamard_block_would_be_rejected_as_exact():
    with pytest.raises(AssertionError, match=r"E exp\(w\.v\)"):
        check_exponential_mean(Orthogonal(Hadamard(1)), 8, 8, 0)


def test_the_laws_accept_what_is_right():
    check_exponential_mean(Orthogonal(Haar()), 4, 4, 0)
    check_normal_law(IID(), 4, 1, 0)
    check_second_moments(Orthogonal(StructuredGivens()), 5, 8, 0)
    check_blocks_are_independent(Simplex(), 4, 4, 0)
