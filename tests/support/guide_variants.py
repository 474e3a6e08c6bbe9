"""A pytest plugin: the variants of docs/adding_a_variant.md, and a wrong one of each kind, registered before collection."""

from __future__ import annotations

import doctest
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bochner import catalogue, projections

PAGE = Path(__file__).parent.parent.parent / "docs" / "adding_a_variant.md"
NAMES = ("TwoBlocks", "Pairs", "Repeated", "TwoScales", "Sinusoid")


def page() -> dict[str, object]:
    """What the page defines, registered as it registers it; its last step, which takes it out, left out."""
    text = PAGE.read_text(encoding="utf-8").partition("## What follows")[0]
    namespace: dict[str, object] = {"__name__": __name__}
    code = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    exec(compile(code, str(PAGE), "exec"), namespace)
    return namespace


RIGHT = page()
globals().update({name: RIGHT[name] for name in NAMES})  # so that pickles find them


@dataclass(frozen=True)
class WrongBlocks(RIGHT["TwoBlocks"]):
    """One HD block, with the claim that every direction becomes uniform."""

    name = "wrong-blocks"
    uniform_directions = "all"

    def stages(self, dim, n_blocks, rng):
        return super().stages(dim, n_blocks, rng)[:1]


@dataclass(frozen=True)
class WrongPairs(RIGHT["Pairs"]):
    """Directions that are not of length one."""

    name = "wrong-pairs"

    def directions(self, radii, dim):
        return 1.1 * super().directions(radii, dim)


@dataclass(frozen=True)
class WrongRepeated(RIGHT["Repeated"]):
    """Squares of lengths in place of lengths, with the claim to be exact."""

    name = "wrong-repeated"

    def unit_lengths(self, dim, sizes, rng):
        return super().unit_lengths(dim, sizes, rng) ** 2 / np.sqrt(dim)


@dataclass(frozen=True)
class WrongScales(RIGHT["TwoScales"]):
    """Rows of another mixture."""

    name = "wrong-scales"

    def sample_scales(self, shape, rng):
        return np.random.default_rng(rng).choice([1.0, 2.5], shape)


@dataclass(frozen=True)
class WrongSinusoid(RIGHT["Sinusoid"]):
    """Features that are too large by a factor, with the claim to be unbiased."""

    name = "wrong-sinusoid"

    def draw(self, draws, kernel):
        features = super().draw(draws, kernel)
        features.nodes.weights = 1.5 * features.nodes.weights
        return features


@dataclass(frozen=True)
class WrongRows(projections.IID):
    """Independent rows that are too long."""

    name = "wrong-rows"

    def _draw(self, d, m, rng, kernel):
        drawn = super()._draw(d, m, rng, kernel)
        drawn.W, drawn.radii = 1.1 * drawn.W, 1.1 * drawn.radii
        return drawn


WRONG = (WrongBlocks, WrongPairs, WrongRepeated, WrongScales, WrongSinusoid, WrongRows)
for wrong in WRONG:
    catalogue.register(wrong)


def pytest_collection_modifyitems(items):
    """Leave out what the ordinary run has, and most pairs of a variant with parts of the library."""
    ours = re.compile("|".join((*NAMES, *(cls.__name__ for cls in WRONG))))
    few = ("IID()", "Orthogonal(rotation=Haar(), radii='kernel')", "Pairs()", "Repeated()")
    items[:] = [
        item
        for item in items
        if ours.search(item.name)
        and (
            "mean_is" not in item.name or (re.search("Sinusoid|Scales", item.name) and any(P in item.name for P in few))
        )
    ]
