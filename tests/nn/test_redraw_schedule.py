"""Redraws at regular steps."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import nn

from bochner.nn import RedrawSchedule, calibrate, replace_attention
from support.attention_models import batch_of, build, converted, generator


@pytest.mark.parametrize("name", ["encoder", "gpt2"])
def test_rows_change_at_regular_steps(name):
    model, run = build(name)
    new = converted(model)
    schedule = RedrawSchedule(new, every=3, until=7, generator=generator(5))
    found = [run(new)]
    for _ in range(10):
        schedule.step()
        found.append(run(new))
    changed = [not torch.equal(a, b) for a, b in pairwise(found)]
    assert changed == [False, False, True, False, False, True, False, False, False, False]


def test_constants_are_kept_and_the_count_is_saved():
    model, _ = build("encoder")
    new = replace_attention(model, calibrate(model, [batch_of("encoder")], 8), copy=True)
    before = new.layers[0].self_attn.features.plans
    schedule = RedrawSchedule(new, every=1)
    assert schedule.step() and new.layers[0].self_attn.features.plans == before
    other = RedrawSchedule(new, every=2)
    other.load_state_dict(schedule.state_dict())
    assert other.step() and other.n_steps == 2


ERRORS = [
    (lambda: RedrawSchedule(nn.Linear(2, 2)), ValueError, "model has no attention with random features"),
    (lambda: RedrawSchedule(1), TypeError, "model must be a torch.nn.Module"),
    (
        lambda: RedrawSchedule(converted(build("encoder")[0]), every=0),
        ValueError,
        "every must be an integer of at least 1",
    ),
    (
        lambda: RedrawSchedule(converted(build("encoder")[0])).load_state_dict({}),
        ValueError,
        "state_dict must be that of",
    ),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=f"^RedrawSchedule: {words}"):
        call()
