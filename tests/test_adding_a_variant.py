"""What docs/adding_a_variant.md says is all there is to do: its classes are found everywhere, and obey the common laws."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bochner
from bochner import Approximation, catalogue, kernels, maps
from bochner.cli import main
from bochner.projections import IID, Blocks, Orthogonal, Quadrature
from support.checks import check_mean, probes

PAGE = Path(__file__).parent.parent / "docs" / "adding_a_variant.md"
NAMES = ("TwoBlocks", "Pairs", "Repeated", "TwoScales", "Sinusoid")


@pytest.fixture(scope="module")
def page():
    """The names that the page defines, registered as it registers them."""
    from support import guide_variants

    for cls in guide_variants.WRONG:
        catalogue.unregister(cls)
    try:
        yield guide_variants.RIGHT
    finally:
        for name in NAMES:
            catalogue.unregister(guide_variants.RIGHT[name])
        del sys.modules["support.guide_variants"]


def test_only_public_names_are_used():
    code = "".join(e.source for e in doctest.DocTestParser().get_examples(PAGE.read_text(encoding="utf-8")))
    assert not re.findall(r"bochner\.\w*\.?_\w+|from bochner\.[\w.]+ import|import bochner\.\w", code)


def test_recommend_tries_the_map_the_rotation_the_geometry_and_the_law(page):
    X = np.random.default_rng(0).standard_normal((40, 5))
    advice = bochner.recommend(X, kernel="two-scales", n_features=16, rng=0)
    tried = [candidate.spec for candidate in advice.ranking]
    assert advice.best.kernel.__class__ is page["TwoScales"]
    assert any(spec.map == page["Sinusoid"]() for spec in tried)
    for part, cls in (("rotation", "TwoBlocks"), ("geometry", "Pairs"), ("radial_law", "Repeated")):
        assert any(getattr(spec.projection, part, None) == page[cls]() for spec in tried), cls


def test_compare_measures_them(page, tmp_path, capsys):
    assert main(["compare", "iris", "--kernel", "two-scales", "--features", "16", "--out", str(tmp_path)]) == 0
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.*") if path.suffix in (".json", ".html")]
    report = "".join(texts)
    for name in NAMES:
        assert name in report, name


def test_info_shows_them(page, capsys):
    assert main(["info", "--dimension", "16", "--rows", "16"]) == 0
    out = capsys.readouterr().out
    for name in ("TwoBlocks", "Pairs", "Repeated", "two-scales", "sinusoid"):
        assert name in out


@pytest.mark.parametrize("rows", ("geometry", "law", "independent"))
def test_the_map_is_unbiased_for_the_kernel_with_the_geometry_and_the_law(page, rows, seed):
    projection = {
        "geometry": Blocks(geometry=page["Pairs"]()),
        "law": Orthogonal(radii=page["Repeated"]()),
        "independent": IID(),
    }
    spec, rng = (
        Approximation(page["TwoScales"](), page["Sinusoid"](), projection[rows], 35),
        np.random.default_rng(seed),
    )
    assert spec.unbiased
    points, zero = probes(4, 1.2, seed), np.zeros((1, 4))
    Z = np.stack(list(points.values()))
    values = np.array([spec.draw(4, rng).gram(Z, zero)[:, 0] for _ in range(100)])
    for name, found, expected in zip(points, values.T, spec.kernel(Z, zero)[:, 0], strict=True):
        check_mean(found, float(expected), f"{spec} {name}")


def test_the_rotation_is_orthogonal_and_has_an_adjoint(page):
    P = Orthogonal(page["TwoBlocks"](), radii="fixed").sample(6, 8, rng=0)
    W, Z = P.to_dense(), np.random.default_rng(0).standard_normal((3, 8))
    np.testing.assert_allclose(W.T @ W, 8 * np.eye(6), atol=1e-12)
    np.testing.assert_allclose(P.adjoint(Z), Z @ W, atol=1e-12)


@pytest.mark.parametrize("rows", (IID(), Quadrature()), ids=repr)
def test_the_layout_of_the_map_is_that_of_its_features(page, rows):
    spec = Approximation(kernels.Gaussian(), page["Sinusoid"](), rows, 6)
    phi = spec.draw(3, rng=0)
    assert (spec.n_features_out, spec.symmetric) == (phi.n_features_out, phi.symmetric)


def test_files_hold_them(page, tmp_path):
    rows = Blocks(page["TwoBlocks"](), page["Pairs"](), page["Repeated"]())
    phi = Approximation(page["TwoScales"](2.0), page["Sinusoid"](), rows, 9).draw(5, rng=0)
    phi.save(tmp_path / "own.npz")
    X = np.random.default_rng(1).standard_normal((4, 5))
    np.testing.assert_array_equal(bochner.load(tmp_path / "own.npz").queries(X), phi.queries(X))


def test_what_is_not_registered_cannot_be_saved(page, tmp_path):
    catalogue.unregister(page["Sinusoid"])
    try:
        phi = Approximation(kernels.Gaussian(), page["Sinusoid"](), n_projections=3).draw(2, rng=0)
        with pytest.raises(
            TypeError, match=r"Sinusoid\(\) cannot be saved: .* register it with bochner\.extending\.register"
        ):
            phi.save(tmp_path / "own.npz")
    finally:
        catalogue.register(page["Sinusoid"])


def test_a_map_of_ones_own_says_that_it_has_no_closed_form(page):
    with pytest.raises(maps.NoClosedForm, match=r"no closed form is known for the error of Sinusoid\(\)"):
        Approximation(kernels.Gaussian(), page["Sinusoid"]()).mse(np.ones((2, 3)))


LAWS = {
    "WrongBlocks": "test_gaussian_rows_are_normal",
    "WrongPairs": "test_radii_weights_and_blocks_describe_the_rows",
    "WrongRepeated": "test_second_moments_of_gaussian_rows",
    "WrongScales": "test_mean_is_the_kernel_for_shift_invariant_kernels",
    "WrongSinusoid": "test_mean_is_the_kernel",
    "WrongRows": "test_second_moments_of_gaussian_rows",
}
"""A wrong variant of each kind, and a law that rejects it (support/guide_variants.py)."""


@pytest.fixture(scope="module")
def outcomes():
    """Results of the common tests, by their names, in a process in which all these classes are registered."""
    tests = Path(__file__).parent
    files = [str(tests / f"test_common_{kind}.py") for kind in ("maps", "projections", "rotations")]
    laws = " or ".join(sorted({*LAWS.values(), "torch", "drawn_matrices"}))
    options = ["-q", "-rA", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "support.guide_variants"]
    command = [sys.executable, "-m", "pytest", *options, "-k", f"({laws}) and ({' or '.join([*NAMES, *LAWS])})", *files]
    environment = os.environ | {"PYTHONPATH": str(tests)}
    done = subprocess.run(command, cwd=tests.parent, capture_output=True, text=True, env=environment)
    found = re.findall(r"^(PASSED|FAILED) \S*::(.*?)(?: - .*)?$", done.stdout, flags=re.MULTILINE)
    assert found, done.stdout[-3000:] + done.stderr[-3000:]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_common_tests_run_over_them_and_they_pass(name, outcomes):
    own = [(result, test) for result, test in outcomes if re.search(rf"\b{name}\b", test) and "Wrong" not in test]
    assert len(own) >= 4, name
    assert [test for result, test in own if result == "FAILED"] == []


@pytest.mark.parametrize("name", LAWS)
def test_common_tests_reject_a_wrong_one(name, outcomes):
    assert any(result == "FAILED" and test.startswith(f"{LAWS[name]}") and name in test for result, test in outcomes)
