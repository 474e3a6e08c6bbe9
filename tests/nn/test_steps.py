"""Steps meet every query with exactly the keys that it sees."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from bochner.nn._walk import Everything, Prefixes


@given(st.lists(st.integers(0, 40), max_size=30), st.integers(40, 50), st.integers(1, 20))
def test_every_query_sees_its_prefix(lengths, n_keys, chunk):
    prefixes = Prefixes(sorted(lengths))
    seen = torch.zeros(len(lengths), n_keys, dtype=torch.int64)
    absorbed = queries = 0
    for step in prefixes.steps(n_keys, chunk):
        assert (step.q0, step.k0) == (queries, absorbed)
        assert step.q1 - step.q0 <= chunk and step.k1 - step.k0 <= chunk
        seen[step.q0 : step.q1, : step.k0] += 1
        seen[step.q0 : step.q1, step.k0 : step.k1] += prefixes.visible(step, seen.device)
        queries, absorbed = step.q1, step.k1
    assert (queries, absorbed) == (len(lengths), n_keys)
    assert torch.equal(seen, (torch.arange(n_keys) < torch.tensor(sorted(lengths), dtype=torch.int64)[:, None]).long())


def test_causal_steps_are_aligned():
    assert [tuple(step) for step in Prefixes(range(1, 7)).steps(6, 4)] == [(0, 4, 0, 4), (4, 6, 4, 6)]


def test_the_same_number_for_all():
    assert list(Everything(7, 3)) == [7, 7, 7] and Everything(7, 3)[1:] == [7, 7]
