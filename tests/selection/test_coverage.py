"""`recommend` tries every map, projection and kernel of the catalogue, with exceptions that have a reason."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import bochner
from bochner import catalogue
from bochner.radii import Fixed

DIMENSIONS = (2, 8, 2048)
NOT_TRIED = {
    "landmarks-kmeans": "takes long",
    "complex-exponential": "equals Positive with its default constant",
}
REPLACED = {
    "rom": "fixed lengths bias cosines",
    "sgp": "uniform angles; Beta angles are exact",
    "bfly": "uniform angles; Beta angles are exact",
    "qbf-b": "the padded butterfly of fast-orthoplex is unbiased",
}
"""Named by papers; the reason why another variant is tried in their place."""


def tried(kernel):
    return {(spec.map, spec.projection) for d in DIMENSIONS for spec in catalogue.candidates(kernel, d)}


def test_every_map_and_every_projection_is_tried_for_some_kernel():
    pairs = set().union(*(tried(kernel) for kernel in set(catalogue.kernels().values())))
    maps, projections = ({pair[i] for pair in pairs} for i in (0, 1))
    assert {name for name, m in catalogue.maps().items() if m not in maps} == set(NOT_TRIED)
    assert [name for name, P in catalogue.projections().items() if P not in projections] == []


def test_every_mechanism_with_a_name_is_tried_or_replaced():
    missing = set()
    for name in catalogue.mechanisms():
        spec = catalogue.mechanism(name)
        P = spec.projection
        P = replace(P, radii=Fixed()) if getattr(P, "radii", None) == "fixed" else P  # two ways to say the same
        if (spec.map, P) not in tried(spec.kernel):
            missing.add(name)
    assert missing == set(REPLACED)


ONE_OF_EACH = {type(kernel): name for name, kernel in catalogue.kernels().items()}


@pytest.mark.parametrize("name", sorted(ONE_OF_EACH.values()))
@pytest.mark.swept(3)
def test_every_kernel_has_a_ranking(name):
    X = np.random.default_rng(0).standard_normal((40, 2)) / 2
    advice = bochner.recommend(X, kernel=name, n_features=16, rng=0)
    assert advice.ranking and np.isfinite([one.error for one in advice.ranking]).all()
