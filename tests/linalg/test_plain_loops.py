"""The loops in NumPy equal the compiled ones, and the library runs where Numba cannot be imported."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest

from bochner import rotations
from bochner.linalg import plain_coding, plain_lanes
from bochner.linalg.engine import LANES
from bochner.rotations._stages import SmallBlocks, joined

compiled_coding = pytest.importorskip("bochner.linalg.compiled.coding", reason="Numba is not installed")

from bochner.linalg.compiled import blocks as compiled_blocks  # noqa: E402
from bochner.linalg.compiled import codes as compiled_codes  # noqa: E402
from bochner.linalg.compiled import decoding, gathering, lanes, selecting, waves  # noqa: E402
from bochner.linalg.compiled import points as pointwise  # noqa: E402


@pytest.fixture(params=[np.float32, np.float64])
def rng_and_dtype(request):
    return np.random.default_rng(0), np.dtype(request.param)


def same(function, *arguments):
    """Run both on copies, and compare every array that they may have changed."""
    name, module = function
    results = []
    for home in (module, plain_coding if hasattr(plain_coding, name) else plain_lanes):
        copies = [_copied(a) for a in arguments]
        getattr(home, name)(*copies)
        results.append(copies)
    _compare(*results)


def same_on_lanes(name, x, *arguments):
    """Run both on the same rows, each in its own order of lanes, and compare all lines."""
    groups, capacity, width = x.shape
    expected, found = x.copy(), plain_lanes.room_for(groups * width, capacity, x.dtype)
    found[0] = x.swapaxes(0, 1).reshape(capacity, -1)
    getattr(lanes, name)(expected, *arguments)
    getattr(plain_lanes, name)(found, *arguments)
    _compare([found[0]], [expected.swapaxes(0, 1).reshape(capacity, -1)])


def _copied(value):
    if isinstance(value, tuple):
        return tuple(_copied(v) for v in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _compare(one, other):
    for a, b in zip(one, other, strict=True):
        if isinstance(a, tuple):
            _compare(a, b)
        elif isinstance(a, np.ndarray):
            tolerance = 2e-5 if a.dtype == np.float32 else 1e-10
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("n", [1, 16, 37])
def test_rows_go_into_lanes_and_back(n, rng_and_dtype):
    rng, dtype = rng_and_dtype
    wide, factors = rng.standard_normal((n, 30)).astype(dtype), rng.standard_normal(21).astype(dtype)
    rooms = [home.room_for(n, 40, dtype) for home in (lanes, plain_lanes)]
    for home, room in zip((lanes, plain_lanes), rooms, strict=True):
        room[:] = 7
        home.load(wide[:, 3:24], room, 32)
    lines = rooms[0].swapaxes(0, 1).reshape(40, -1)[:, :n]
    np.testing.assert_array_equal(rooms[1][0], lines)
    for name, arguments in (("store_scaled", (factors,)), ("add_to", ())):
        outs = []
        for home, room in zip((lanes, plain_lanes), rooms, strict=True):
            out = np.ones((n, 30), dtype)
            getattr(home, name)(room, *arguments, out[:, 2:23])
            outs.append(out)
        np.testing.assert_allclose(outs[0], outs[1], rtol=1e-6)


@pytest.mark.parametrize(
    "low, high, first", [(0, 6, 0), (2, 6, 0), (0, 3, 4), (0, 0, 0), (1, 7, 0), (3, 4, 0), (5, 7, 0), (6, 7, 12)]
)
def test_walsh_levels(low, high, first, rng_and_dtype):
    rng, dtype = rng_and_dtype
    x = rng.standard_normal((3, 140, LANES)).astype(dtype)
    same_on_lanes("walsh_levels", x, 128, low, high, first)
    for back in (False, True):
        same_on_lanes("signed_walsh", x, rng.choice([-0.3, 0.3], 128).astype(dtype), low, high, back)


def test_long_walsh_transforms(rng_and_dtype):
    rng, dtype = rng_and_dtype
    x = rng.standard_normal((1, 4096, LANES)) / 64  # so that results are of the order of one
    same_on_lanes("walsh_levels", x.astype(dtype), 4096, 0, 12)


@pytest.mark.parametrize("back", [False, True])
def test_rotations_of_lines(back, rng_and_dtype):
    rng, dtype = rng_and_dtype
    x = rng.standard_normal((3, 80, LANES)).astype(dtype)
    for half in (1, 4, 16, 32):
        for angles in (half, 1):  # one for each pair, or one for each group
            angle = rng.uniform(0, 6, (64 // (2 * half), angles))
            same_on_lanes("givens_level", x, 64, half, np.cos(angle).astype(dtype), np.sin(angle).astype(dtype), back)
    pairs = np.array([rng.choice(20, 2, replace=False) for _ in range(60)]).astype(np.int32)
    walk = rng.uniform(0, 6, 60)
    i, j = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
    same_on_lanes("givens_walk", x, i, j, np.cos(walk).astype(dtype), np.sin(walk).astype(dtype), back)
    i = np.arange(30, dtype=np.int32)  # neighbours, of which NumPy takes a view
    c, s = np.cos(walk[:30]).astype(dtype), np.sin(walk[:30]).astype(dtype)
    same_on_lanes("givens_walk", x, i, i + np.int32(40), c, s, back)


def test_lines(rng_and_dtype):
    rng, dtype = rng_and_dtype
    x = rng.standard_normal((3, 20, LANES)).astype(dtype)
    same_on_lanes("scale_lines", x, rng.choice([-1.0, 1.0], 16).astype(dtype), 0.3)
    for name in ("simplex_lines", "simplex_lines_adjoint"):
        same_on_lanes(name, x, 9)


@pytest.mark.parametrize("rotation", [rotations.StructuredGivens(), rotations.Butterfly(), rotations.MultiHadamard()])
@pytest.mark.parametrize("d", [2, 16, 64, 128, 512])
def test_stages_put_together_are_the_stages(rotation, d):
    drawn = rotation.sample(d, 3, 0)
    x = np.random.default_rng(1).standard_normal((5, d))
    for back in (False, True):
        for block in range(3):
            room = plain_lanes.room_for(5, d, np.float64)
            plain_lanes.load(x, room, d)
            for stage in joined(drawn.stages, d, 3)[:: -1 if back else 1]:
                if isinstance(stage, SmallBlocks):
                    stage.lanes(room, block, d, back=back)
                else:
                    kept = slice(block, block + 1)
                    room[0] = stage.rows(room[0].T[:, None, :], kept, back=back)[:, 0].T
            expected = drawn.rows(x[:, None, :], slice(block, block + 1), back=back)[:, 0]
            np.testing.assert_allclose(room[0].T, expected, atol=1e-12)


@pytest.mark.parametrize("signs", [1, 2])
def test_points(signs, rng_and_dtype):
    rng, dtype = rng_and_dtype
    same(
        ("reflect", lanes), rng.standard_normal((5, signs, 7)).astype(dtype), rng.standard_normal(7).astype(dtype), 0.5
    )


def test_distances(rng_and_dtype):
    rng, dtype = rng_and_dtype
    rows, points = rng.standard_normal((6, 4)).astype(dtype), rng.standard_normal((4, 9)).astype(dtype)
    for name in ("manhattan", "squared"):
        same((name, pointwise), rows, points, rng.uniform(1, 2, 4).astype(dtype), np.empty((6, 9), dtype))


def test_sums_of_signs(rng_and_dtype):
    rng, dtype = rng_and_dtype
    rows, points = rng.integers(0, 3, (6, 4)).astype(dtype), rng.integers(0, 3, (4, 9)).astype(dtype)
    same(("signed_sums", pointwise), rows, points, rng.standard_normal((6, 9)).astype(dtype), np.empty((6, 4), dtype))


def test_products_of_rows(rng_and_dtype):
    rng, dtype = rng_and_dtype
    first, second = rng.standard_normal((6, 3)).astype(dtype), rng.standard_normal((6, 5)).astype(dtype)
    for room in (np.zeros((6, 15), dtype), np.zeros((6, 20), dtype)[:, 2:17]):  # a view, as one block of many
        same(("row_products", pointwise), np.dtype(dtype).type(-0.5), first, second, room)


@pytest.mark.parametrize("widths", [(1, 1, 12), (1, 12, 12), (12, 12, 12)])
def test_grids(widths):
    rng = np.random.default_rng(0)
    shape = tuple(40 if width > 1 else 1 for width in widths)
    cells = np.where(np.array(widths) > 1, rng.uniform(8, 30, (50, 3)), 0.0)
    values, held = rng.standard_normal((50, 2)), rng.standard_normal((*shape, 2))
    one, other = np.zeros((*shape, 2)), np.zeros((*shape, 2))
    pointwise.spread(cells, values, np.array(widths), 27.6, one)
    plain_lanes.spread(cells, values, np.array(widths), 27.6, other)
    np.testing.assert_allclose(one, other, atol=1e-12)
    found, expected = np.empty((50, 2)), np.empty((50, 2))
    pointwise.interpolate(cells, held, np.array(widths), 27.6, expected)
    plain_lanes.interpolate(cells, held, np.array(widths), 27.6, found)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_waves(rng_and_dtype):
    rng, dtype = rng_and_dtype
    phases = 30 * rng.standard_normal((4, 9)).astype(dtype)
    integer = np.int32 if dtype == np.float32 else np.int64
    name, limit = ("waves32", waves.LIMIT32) if dtype == np.float32 else ("waves64", waves.LIMIT64)
    bits = (phases.view(integer), dtype.type(limit).view(integer))
    amplitudes, out = rng.uniform(1, 2, 8).astype(dtype), np.zeros((4, 20), dtype)
    same((name, waves), phases, *bits, dtype.type(0.7), amplitudes, out, 9, 1)


def coded_case(rng, H=4, key_heads=2, d=8, bits=64, n=300):
    f32 = np.float32
    words = np.zeros((2, key_heads, n + 5, bits // 64), np.uint64)
    coded = (words, np.zeros((2, key_heads, n + 5), f32), np.zeros((2, key_heads, n + 5), f32))
    keys = rng.standard_normal((2, key_heads, n + 5, d)).astype(f32)
    bias = np.zeros((2, n + 5), f32)
    bias[1, :4] = -np.inf
    rows = rng.standard_normal((bits, d)).astype(f32)
    turns = rng.standard_normal((H, d, d)).astype(f32)
    centers = rng.standard_normal((H, d)).astype(f32) / 3
    return keys, bias, rows, turns, centers, coded, n


@pytest.mark.parametrize("bits", [64, 128])
def test_codes(bits):
    rng = np.random.default_rng(1)
    keys, bias, rows, turns, centers, coded, n = coded_case(rng, bits=bits)
    sides = (centers[:2], turns[:2], rows, centers[2:])
    same(("append_codes", compiled_codes), keys, bias, 0, n, 0.3, sides, coded)
    plain_coding.append_codes(keys, bias, 0, n, 0.3, sides, coded)
    q = rng.standard_normal((2, 4, 8)).astype(np.float32)
    first = np.array([[0, 1, 2], [4, 5, n]])
    counts = np.array([40, 0, 30, 500]), np.array([10, 0, 30, 20]), np.array([0, 24, 0, 40])
    phases = rng.random((2, 4))
    values = rng.standard_normal((2, 2, n + 5, 6)).astype(np.float32)
    both = []
    for home in (compiled_coding, plain_coding):
        out, sums = np.zeros((2, 4, 6), np.float32), np.zeros((2, 4, 2))
        used = np.full((2, 4, 100), -1, np.int64)
        home.decode_coded(
            q,
            keys,
            values,
            bias,
            n,
            (0, 4),
            (centers, turns, rows),
            coded,
            (16, first),
            counts,
            phases,
            0.3,
            out,
            sums,
            used,
        )
        both.append((out, sums, np.sort(used, axis=-1)))
    np.testing.assert_allclose(both[0][0], both[1][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(both[0][1], both[1][1], rtol=1e-4)
    np.testing.assert_array_equal(both[0][2], both[1][2])


@pytest.mark.parametrize("bits", [24, 64, 100, 192])
def test_estimates_are_cosines_of_different_bits(bits):
    rng, n, words = np.random.default_rng(5), 300, -(-bits // 64)
    signs = rng.random((n + 1, 64 * words)) < 0.5
    signs[:, bits:] = False
    packed = np.packbits(signs, axis=-1, bitorder="little").view(np.uint64)
    norms, offsets = rng.uniform(1, 2, n).astype(np.float32), rng.standard_normal(n).astype(np.float32)
    offsets[3] = -np.inf
    scores = np.empty(n, np.float32)
    compiled_codes.estimate(packed[0], 1.5, bits, packed[1:], norms, offsets, np.empty(n, np.int32), scores)
    different = (signs[1:] != signs[0]).sum(axis=-1)
    np.testing.assert_allclose(scores, 1.5 * norms * np.cos(np.pi * different / bits) + offsets, rtol=0, atol=2e-6)


def test_exponentials_without_calls():
    scores = np.concatenate([np.linspace(-690, 0, 5001), np.linspace(-1, 0, 5001), [-800.0, -1e300]])
    found = scores + 3
    gathering.exponentials(found, 3.0, np.empty(len(scores), np.int64))
    np.testing.assert_allclose(found[:-2], np.exp(scores[:-2]), rtol=1e-13)
    assert (found[-2:] < 1e-300).all()


def test_choices_for_blocks():
    rng = np.random.default_rng(2)
    p, blocks = 200, 5
    f32 = np.float32
    judges = rng.integers(0, 2**63, (blocks, 3, 1), dtype=np.uint64)
    words = rng.integers(0, 2**63, (p, 1), dtype=np.uint64)
    offsets = rng.standard_normal(p).astype(f32)
    offsets[7] = -np.inf
    ranges = np.array([[0, 39, 40], [30, 49, 80], [70, 99, 120], [110, 139, 160], [150, 199, 200]])
    first = np.zeros(p, bool)
    first[:2] = True
    phases = rng.random(blocks)
    arguments = judges, rng.uniform(1, 2, (blocks, 3)).astype(f32), 64
    both = []
    for home in (compiled_blocks, plain_coding):
        places, drawn, shifts = np.zeros((blocks, 12), np.int64), np.zeros((blocks, 9), np.int64), np.zeros((blocks, 9))
        home.select_for_blocks(
            *arguments, words, np.ones(p, f32), offsets, ranges, first, 12, places, phases, drawn, shifts
        )
        both.append((np.sort(places, axis=-1), drawn, shifts))
    for one, other in zip(*both, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert (both[0][1][0] == p).all()  # the first block sees no more than it has near it
    assert (both[0][1][1:] < p).all()


def test_draws_of_keys():
    """Both, and torch's, draw the same; a key whose score is minus infinity is never drawn."""
    rng = np.random.default_rng(3)
    for n, count in ((1, 3), (63, 8), (64, 64), (200, 16), (1000, 200)):
        scores = (3 * rng.standard_normal(n)).astype(np.float32)
        scores[rng.random(n) < 0.2] = -np.inf
        scores[0] = 200.0 if n == 200 else scores[0]  # all draws but chance
        phase, found = rng.random(), []
        for home in (selecting, plain_coding):
            places, shifts = np.full(count, -1), np.zeros(count)
            number = home.draw_keys(scores, count, phase, places, shifts)
            found.append((places[:number], shifts[:number]))
        np.testing.assert_array_equal(found[0][0], found[1][0])
        np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-6)
        assert (scores[found[0][0]] > -np.inf).all() and len(found[0][0]) in (0, count)


@pytest.mark.parametrize("window, anchors", [(0, 2), (3, 2), (3, 0)])
def test_decoding(window, anchors, rng_and_dtype):
    rng, dtype = rng_and_dtype

    def normal(*shape):
        return (0.5 * rng.standard_normal(shape)).astype(dtype)

    B, H, G, d, e, m = 2, 4, 2, 5, 6, 7
    side, other = (normal(H, d, m), normal(H, 1, m)), (normal(H, d, m), normal(H, 1, m))
    frame, second = (normal(H, d, d), normal(H, 1, d)), (normal(H, d, d), normal(H, 1, d))
    there = np.array([True, False])
    values, shift = np.abs(normal(B, H, m, e + 1)), normal(B, H, 1, m)
    q, k, v, out = normal(B, H, 1, d), normal(B, G, 1, d), normal(B, G, 1, e), np.zeros((B, H, 1, e), dtype)
    same(("decode", decoding), q, k, v, there, side, other, frame, -0.5, values, shift, out)
    same(("decode", decoding), q, k[:, :, :0], v[:, :, :0], there, side, other, frame, -0.5, values, shift, out)
    slots = anchors + max(window - 1, 0) + 1
    near_k, near_v = normal(B, H, slots, d), normal(B, H, slots, e)
    for empty in (True, False):
        bias = np.zeros((B, H, slots), dtype)
        bias[..., -1] = -np.inf
        if empty:
            bias[:] = -np.inf
        near = (window, anchors), values, shift, near_k, near_v, bias, out
        same(("decode_near", decoding), q, k, v, there, (side, other), (frame, second), -0.5, 0.4, *near)


SMOKE = r"""
import json, sys
if sys.argv[1] == "without":
    sys.modules["numba"] = sys.modules["llvmlite"] = None      # importing them now fails
import warnings
warnings.simplefilter("ignore")
import numpy as np
from scipy import sparse
import bochner
from bochner import kernels, maps, projections, rotations
from bochner.linalg.loops import ENGINE

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 5))
y = np.sin(X[:, 0]) + X[:, 1]
found = {}
for name in ("Haar", "Hadamard", "MultiHadamard", "Kac", "StructuredGivens", "Butterfly"):
    for geometry in (projections.Orthogonal, projections.Simplex):
        try:
            projection = geometry(getattr(rotations, name)())
        except ValueError:
            continue
        phi = bochner.Approximation(kernels.Gaussian(2.0), projection=projection, n_projections=12).draw(5, rng=0)
        found[f"{name} {geometry.__name__}"] = phi.queries(X[:3]).ravel().tolist()
found["laplacian"] = kernels.Laplacian(2.0)(X[:3], X[3:6]).ravel().tolist()
found["fwht"] = bochner.linalg.fwht(np.arange(64.0)).tolist()

from bochner import learn
ridge = learn.KernelRidge(gamma=0.1, n_components=32, alpha=0.1, random_state=0).fit(X, y)
found["ridge"] = ridge.predict(X[:5]).tolist()
process = learn.GaussianProcess(kernels.Gaussian(2.0), n_components=32, random_state=0).fit(X, y)
found["process"] = process.predict(X[:5]).tolist()
classes = learn.KernelClassifier(gamma=0.1, n_components=32, alpha=0.1, random_state=0).fit(X, y > 0)
found["classes"] = classes.decision_function(X[:5]).tolist()

from bochner.graphs import Diffusion, Walks
ring = sparse.diags_array([np.ones(19), np.ones(19), [1.0], [1.0]], offsets=[1, -1, 19, -19])
found["graph"] = Walks(Diffusion(2.0), n_walks=8).draw(ring, rng=0).gram(np.arange(4)).ravel().tolist()

from bochner.statistics import mmd_test
found["mmd"] = [mmd_test(X[:30], X[30:] + 0.3, rng=0).statistic]

from bochner.optimize import minimize
found["optimize"] = np.asarray(minimize(lambda p: (p**2).sum(), np.ones(3), rng=0, max_evaluations=60).x).tolist()

if len(sys.argv) > 2:
    import torch
    from bochner.nn import AttentionState, RandomFeatureAttention, coded_attention
    torch.manual_seed(0)
    attention = RandomFeatureAttention(16, 2, batch_first=True, spec="favor+", window=2, anchors=1).eval()
    x, state, outs = torch.randn(1, 6, 16), AttentionState(), []
    with torch.no_grad():
        for t in range(6):
            now = x[:, t : t + 1]
            outs.append(attention(now, now, now, need_weights=False, is_causal=True, state=state)[0])
    found["decoding"] = torch.cat(outs).ravel().tolist()
    q, k, v = torch.randn(3, 1, 2, 64, 8)
    for block in (1, 8):
        out = coded_attention(q, k, v, causal=True, window=8, kept=8, block=block)
        found[f"codes {block}"] = out.ravel().tolist()
print(json.dumps([ENGINE, found]))
"""


def test_the_library_runs_without_numba():
    """In processes of their own: all results are those of the compiled loops, within rounding; with torch if it is there."""
    more = ["torch"] if find_spec("torch") else []
    outputs = []
    for engine in ("with", "without"):
        command = [sys.executable, "-c", SMOKE, engine, *more]
        run = subprocess.run(command, capture_output=True, text=True)
        assert not run.returncode, run.stderr[-3000:]
        outputs.append(json.loads(run.stdout.splitlines()[-1]))
    assert [output[0] for output in outputs] == ["Numba", "NumPy"]
    assert outputs[0][1].keys() == outputs[1][1].keys()
    for name, values in outputs[0][1].items():
        np.testing.assert_allclose(outputs[1][1][name], values, rtol=1e-4, atol=1e-5, err_msg=name)


def test_rounding_draws_no_key_without_a_chance():
    """Sums over pieces of 64 keys and key by key differ in their last digits; here steps fall between the two."""
    rng = np.random.default_rng(4)
    for _ in range(40):
        scores = rng.uniform(-4, 0, 200).astype(np.float32)
        scores[64:80] = -np.inf
        power = np.where(scores > -np.inf, (scores - scores.max()) * np.float32(0.5 / np.log(2)), np.float32(-126))
        chances = ((power + np.float32(127)) * np.float32(1 << 23)).astype(np.int32).view(np.float32)
        chances = np.where(scores > -np.inf, chances, 0).astype(np.float64)
        for k in range(-30, 31):
            places, shifts = np.full(1, -1), np.full(1, np.nan)
            phase = chances[:64].sum() / chances.sum() * (1 + 4e-9 * k)
            assert compiled_coding.draw_keys(scores, 1, phase, places, shifts) == 1
            assert places[0] in (62, 63, 80, 81) and np.isfinite(shifts[0])
