"""W = D S R as a constructor: presets are named combinations, and what a user writes works like what we wrote."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from array_api_compat import array_namespace

from bochner import geometries, kernels, radii
from bochner._arrays import pad_last
from bochner.projections import Blocks, Orthogonal, Quadrature, Simplex, SimplexPlus
from bochner.rotations import (
    Butterfly,
    DenseRotation,
    FastRotation,
    Haar,
    Hadamard,
    Kac,
    Stage,
    StructuredGivens,
    hd_block,
)
from support.checks import check_mean, probes
from support.projection_laws import (
    block_means,
    check_adjoint_identity,
    check_dense_equals_apply,
    check_exponential_mean,
    check_normal_law,
)

PRESETS = [
    (Orthogonal, geometries.Orthogonal()),
    (Simplex, geometries.Simplex()),
    (SimplexPlus, geometries.SimplexPlus()),
]


def check_equal_draws(first, second, **options):
    """Every number of the two draws has the same bits."""
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])


@pytest.mark.parametrize("rotation", [Haar(), StructuredGivens(), Kac()], ids=repr)
@pytest.mark.parametrize("law", ["kernel", "fixed"])
@pytest.mark.parametrize(("preset", "geometry"), PRESETS, ids=lambda value: getattr(value, "__name__", ""))
def test_presets_are_blocks_draw_for_draw(preset, geometry, law, rotation, seed):
    named, blocks = preset(rotation, law), Blocks(rotation, geometry, law)
    assert (named.geometry, named.radial_law) == (blocks.geometry, blocks.radial_law)
    for kernel in (None, kernels.Matern(1.5)):
        drawn = [p.sample(5, 13, seed, kernel=kernel).to_arrays() for p in (named, blocks)]
        check_equal_draws(*drawn)


@pytest.mark.parametrize("rotation", [Haar(), Butterfly("tree")], ids=repr)
@pytest.mark.parametrize("origin", ["signed", "resample"])
@pytest.mark.parametrize(
    ("vertices", "geometry"), [("simplex", geometries.SimplexVertices()), ("orthoplex", geometries.Orthogonal())]
)
def test_quadrature_is_blocks_draw_for_draw(vertices, geometry, origin, rotation, seed):
    named, blocks = Quadrature(rotation, vertices, origin), Blocks(rotation, geometry, radii.SphericalRadial(origin))
    facts = ("unbiased", "gaussian_rows", "uniform_directions", "gaussian_lengths", "reflected", "has_origin", "signed")
    assert all(getattr(named, fact) == getattr(blocks, fact) for fact in facts)
    assert named.rows_per_rule(5) == blocks.rows_per_rule(5) == geometry.rows_per_block(rotation.padded(5))
    drawn = [p.sample(5, 13, seed, kernel=kernels.Cauchy()) for p in (named, blocks)]
    check_equal_draws(*(P.to_arrays() for P in drawn))
    assert drawn[0].origin_weight == drawn[1].origin_weight != 0


# What a user may write, through public names alone.


@dataclass(frozen=True)
class Reflection(DenseRotation):
    """A Householder reflection of a Haar matrix: Haar again."""

    uniform_directions = "all"

    def matrices(self, dim, n_blocks, rng):
        v = rng.standard_normal((n_blocks, dim, 1))
        v /= np.linalg.norm(v, axis=1, keepdims=True)
        return (np.eye(dim) - 2 * v * v.swapaxes(1, 2)) @ Haar().matrices(dim, n_blocks, rng)


class Swap(Stage):
    """Coordinates in the reverse order, with random signs; a stage without compiled code."""

    numbers = ("signs",)

    def __init__(self, signs):
        self.signs = signs

    def rows(self, x, blocks, *, back):
        xp = array_namespace(x)
        signs = xp.asarray(self.signs[blocks])
        return signs * xp.flip(x, axis=-1) if back else xp.flip(signs * x, axis=-1)


@dataclass(frozen=True)
class SwappedGivens(FastRotation):
    """Exact rows, then a fixed order and signs: exact rows again."""

    uniform_directions = "axes"

    def stages(self, dim, n_blocks, rng):
        levels = StructuredGivens(mix=False).stages(dim, n_blocks, rng)
        return [hd_block(rng, n_blocks, dim), *levels, Swap(rng.choice((-1.0, 1.0), (n_blocks, dim)))]


@dataclass(frozen=True)
class Cone(geometries.Geometry):
    """Directions that lean towards each other, the more so the longer the rows; one more than dimensions."""

    lean: float = 0.5

    def rows_per_block(self, dim):
        return dim + 1

    def directions(self, lengths, dim):
        S = np.zeros((*lengths.shape, dim))
        S[:, np.arange(lengths.shape[1]), np.arange(lengths.shape[1]) % dim] = 1
        S[..., 0] += self.lean * lengths / np.sqrt(dim)
        return S / np.linalg.norm(S, axis=-1, keepdims=True)


@dataclass(frozen=True)
class Cross(geometries.FastGeometry):
    """Every axis twice, with either sign: products without compiled code, more rows than dimensions."""

    axes = True

    def rows_per_block(self, dim):
        return 2 * dim

    def product(self, x, r):
        return array_namespace(x).concat([x, -x], axis=-1)[..., :r]

    def adjoint(self, y, dim):
        whole = pad_last(y, 2 * dim)
        return whole[..., :dim] - whole[..., dim:]


@dataclass(frozen=True)
class Repeated(radii.RadialLaw):
    """One chi length per block."""

    exact = True

    def unit_lengths(self, dim, sizes, rng):
        return np.repeat(np.sqrt(rng.chisquare(dim, len(sizes))), sizes)


@dataclass(frozen=True)
class TiltedWeights(radii.RadialLaw):
    """Lengths chi_{d+1}, with the weights that bring them back to chi_d and a node at zero for the rest."""

    has_origin = True
    signed = True
    unbiased = True

    def unit_lengths(self, dim, sizes, rng):
        return np.sqrt(rng.chisquare(dim + 1, sum(sizes)))

    def weights(self, unit_lengths, dim):
        from scipy.special import gammaln

        mean_length = np.sqrt(2) * np.exp(gammaln((dim + 1) / 2) - gammaln(dim / 2))
        return mean_length / (len(unit_lengths) * unit_lengths)


OWN = [
    Blocks(Reflection()),
    Blocks(SwappedGivens()),
    *(Blocks(R, S) for R in (Haar(), Hadamard(3), StructuredGivens(), Kac()) for S in (Cone(), Cross())),
    *(Blocks(R, S, Repeated()) for R in (Haar(), SwappedGivens()) for S in (geometries.Orthogonal(), Cone())),
    *(Blocks(R, S, TiltedWeights()) for R in (Haar(), StructuredGivens()) for S in (geometries.Orthogonal(), Cross())),
    Simplex(Reflection(), Repeated()),
]
own = pytest.mark.parametrize("projection", OWN, ids=repr)


@own
@pytest.mark.parametrize(("d", "m"), [(1, 4), (3, 3), (6, 31)])
def test_products_of_own_parts_equal_dense(projection, d, m, seed):
    P = projection.sample(d, m, seed)
    check_dense_equals_apply(P, seed)
    check_adjoint_identity(P, seed)


@own
def test_own_parts_on_tensors(projection, seed):
    torch = pytest.importorskip("torch")
    P = projection.sample(6, 31, seed)
    X = np.random.default_rng(seed).standard_normal((3, 6))
    np.testing.assert_allclose(P(torch.tensor(X)).numpy(), P(X), atol=1e-10)


@pytest.mark.parametrize("projection", [p for p in OWN if p.gaussian_rows], ids=repr)
def test_exact_own_parts_have_normal_rows(projection, seed):
    rows = projection.block_sizes(3, 100)[0]
    check_normal_law(projection, 3, rows, seed)
    check_exponential_mean(projection, 3, rows, seed)


@pytest.mark.parametrize("projection", [p for p in OWN if p.unbiased], ids=repr)
@pytest.mark.parametrize("kernel", [kernels.Gaussian(), kernels.Matern(1.5)], ids=repr)
def test_exact_own_parts_give_the_kernel(projection, kernel, seed):
    Z = np.stack(list(probes(3, 1.5, seed).values()))
    values = block_means(projection, 3, projection.block_sizes(3, 100)[0], Z, np.cos, 4000, seed, kernel=kernel)
    for k, z in enumerate(Z):
        check_mean(values[:, k], float(kernel(z[None], np.zeros((1, 3)))[0, 0]), f"{projection} {kernel} probe {k}")


def test_claims_follow_from_the_three_parts():
    assert Blocks(Reflection(), Cone()).gaussian_rows and not Blocks(StructuredGivens(), Cone()).unbiased
    assert Blocks(SwappedGivens(), Cross()).unbiased and not Blocks(Hadamard(3), Cross()).unbiased
    assert Blocks(radii=TiltedWeights()).unbiased and not Blocks(radii=TiltedWeights()).gaussian_rows
    assert Blocks().coupling == Orthogonal().coupling == "orthogonal"
    assert Blocks(geometry=geometries.Simplex()).coupling == "simplex"
    assert (
        Blocks(radii=Repeated()).coupling
        is Blocks(SwappedGivens()).coupling
        is Blocks(geometry=Cone()).coupling
        is None
    )
    assert Blocks(Hadamard(3), Cross()).scales and not Blocks(Hadamard(3), Cone()).scales


def test_directions_follow_the_lengths_of_their_own_block(seed):
    P = Blocks(Haar(), Cone(2.0)).sample(4, 10, seed)
    W, start = P.to_dense(), 0
    for r in P.block_sizes:
        lengths = P.radii[start : start + r]
        U = Cone(2.0).directions(lengths[None], 4)[0]
        block = W[start : start + r] / lengths[:, None]
        np.testing.assert_allclose(block @ block.T, U @ U.T, atol=1e-12)
        start += r
    assert P.block_sizes == (5, 5)


class _Bad:
    """Parts that break their promise."""

    @dataclass(frozen=True)
    class Long(geometries.Geometry):
        def directions(self, lengths, dim):
            return np.full((1, lengths.shape[1], dim), 1.0)

    @dataclass(frozen=True)
    class Few(geometries.Geometry):
        def directions(self, lengths, dim):
            return np.eye(dim)[None, :1]

    @dataclass(frozen=True)
    class Negative(radii.RadialLaw):
        def unit_lengths(self, dim, sizes, rng):
            return np.full(sum(sizes), -1.0)

    @dataclass(frozen=True)
    class Single(radii.RadialLaw):
        def unit_lengths(self, dim, sizes, rng):
            return 2.0

    @dataclass(frozen=True)
    class Flat(DenseRotation):
        uniform_directions = "none"

        def matrices(self, dim, n_blocks, rng):
            return np.eye(dim)


@pytest.mark.parametrize(
    ("projection", "message"),
    [
        (Blocks(geometry=_Bad.Long()), r"Long\(\): directions must be unit vectors, got norms from 2\.0 to 2\.0\."),
        (Blocks(Hadamard(3), _Bad.Few()), r"directions must have shape \(1, 4, 4\) or \(1, 4, 4\), got \(1, 1, 4\)\."),
        (Blocks(radii=_Bad.Negative()), r"unit_lengths must return 4 positive finite numbers, got shape \(4,\)\."),
        (Blocks(radii=_Bad.Single()), r"unit_lengths must return 4 positive finite numbers, got shape \(\)\."),
        (Blocks(_Bad.Flat()), r"Flat\(\): matrices must have shape \(1, 4, 4\), got \(4, 4\)\."),
    ],
)
def test_own_parts_that_break_their_promise_are_refused(projection, message):
    with pytest.raises(ValueError, match=message):
        projection.sample(4, 4, 0)
