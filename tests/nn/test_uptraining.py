"""Training towards a teacher: what changes, what does not, and what an interruption leaves."""

import pytest
import torch
from torch import nn

from bochner.nn import _distillation as distillation
from bochner.nn import _uptraining as uptraining
from bochner.nn import calibrate, replace_attention, uptrain
from support.attention_models import ROWS, TOKENS, build, encoder, generator


def pair(name="encoder"):
    model, _ = build(name)
    batch = {"input_ids": TOKENS} if name == "gpt2" else ROWS
    if name == "gpt2":  # sharper than at the start of training
        for part in model.transformer.h:
            part.attn.c_attn.weight.data *= 8
    plans = calibrate(model, [batch], n_projections=4)
    return model, replace_attention(model, plans, copy=True, generator=generator()), batch


def states(model, batch, converted=None):
    with torch.no_grad():
        return uptraining._states(model, batch, uptraining._blocks(model if converted is None else converted))


@pytest.mark.parametrize("lora", [None, 2])
@pytest.mark.parametrize("name", ["encoder", "gpt2"])
def test_states_come_closer_and_the_modules_stay(name, lora):
    teacher, model, batch = pair(name)
    blocks = uptraining._blocks(model)
    with torch.no_grad():
        wanted = uptraining._states(teacher, batch, blocks)
    before = float(uptraining._distance(states(model, batch), wanted))
    parameters, kinds = dict(model.named_parameters()), [type(m) for m in model.modules()]
    asked = {key: p.requires_grad for key, p in parameters.items()}
    assert uptrain(model, teacher, [batch], lora=lora, steps=25, generator=generator(), verbose=False) is model
    assert float(uptraining._distance(states(model, batch), wanted)) < 0.7 * before
    after = dict(model.named_parameters())
    assert list(after) == list(parameters) and all(after[key] is parameters[key] for key in after)
    assert kinds == [type(m) for m in model.modules()]
    assert asked == {key: p.requires_grad for key, p in after.items()}


def test_changes_have_the_rank_that_was_asked_for():
    teacher, model, batch = pair()
    before = model.layers[0].linear1.weight.detach().clone()
    uptrain(model, teacher, [batch], lora=2, steps=5, generator=generator(), verbose=False)
    change = torch.linalg.svdvals(model.layers[0].linear1.weight.detach() - before)
    assert change[1] > 1e-5 and change[2] < 1e-5 * change[0] + 1e-7
    torch.testing.assert_close(model.layers[0].norm1.weight, torch.ones(32))


def test_an_interruption_changes_nothing(monkeypatch):
    teacher, model, batch = pair()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    calls = []

    def fails(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return distance(*arguments)

    distance = uptraining._distance
    monkeypatch.setattr(uptraining, "_distance", fails)
    with pytest.raises(KeyboardInterrupt):
        uptrain(model, teacher, [batch], steps=9, verbose=False)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert list(model.state_dict()) == list(before)


@pytest.mark.parametrize("lora", [None, 2])
def test_a_model_can_be_its_own_teacher(lora):
    _, model, batch = pair()
    other = replace_attention(encoder(), calibrate(model, [batch], 4), generator=generator())
    other.load_state_dict(model.state_dict())
    teacher = build("encoder")[0]
    teacher.load_state_dict({k: v for k, v in model.state_dict().items() if "features" not in k})
    for one, of in ((model, model), (other, teacher)):
        uptrain(one, of, [batch], lora=lora, steps=4, generator=generator(3), verbose=False)
    for one, another in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, another, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("train", ["distill", "uptrain"])
def test_the_teacher_runs_once_for_each_batch(train, monkeypatch):
    teacher, model, _ = pair()
    batches, count = [ROWS, ROWS + 1], []
    if train == "distill":
        usual = distillation.record
        monkeypatch.setattr(distillation, "record", lambda *a, **o: count.append(1) or usual(*a, **o))
        distillation.distill(model, teacher, batches, steps=7, verbose=False)
    else:
        hook = teacher.register_forward_hook(lambda *_: count.append(1))
        uptrain(model, teacher, batches, steps=7, verbose=False)
        hook.remove()
    assert len(count) == 2


@pytest.mark.parametrize("lora", [None, 2])
def test_training_in_half_precision(lora):
    teacher, model, batch = pair()
    before = float(uptraining._distance(states(model, batch), states(teacher, batch, model)))
    with torch.autocast("cpu", torch.bfloat16):
        uptrain(model, teacher, [batch], lora=lora, steps=25, generator=generator(), verbose=False)
    assert float(uptraining._distance(states(model, batch), states(teacher, batch, model))) < 0.7 * before


def test_without_logits_embeddings_count():
    one, other = torch.randn(2, 3, 5, 4, generator=generator())
    empty = one[..., :0]
    alone = (one - other).square().sum() / (other - other.mean((0, 1))).square().sum()
    cosine = nn.functional.cosine_similarity(one.mean(1), other.mean(1), dim=-1).mean()
    expected = alone + 5 * (1 - cosine)
    torch.testing.assert_close(uptraining._distance([one, empty], [other, empty]), expected)


ERRORS = [
    (lambda: uptrain(encoder(), encoder(), [ROWS]), ValueError, "model has no converted attention"),
    (lambda: uptrain(pair()[1], encoder(), ROWS), TypeError, r"batches must be a list .* such as \[batch\]"),
    (lambda: uptrain(pair()[1], encoder(), [], verbose=False), ValueError, "batches must hold at least one batch"),
    (lambda: uptrain(pair()[1], encoder(), [ROWS], lora=0), ValueError, "lora must be an integer of at least 1"),
    (lambda: uptrain(pair()[1], 3, [ROWS]), TypeError, "teacher: model must be a torch.nn.Module"),
    (lambda: uptrain(nn.Linear(2, 2), encoder(), [ROWS]), ValueError, "no converted attention"),
]


@pytest.mark.parametrize(("call", "kind", "words"), ERRORS, ids=[words for *_, words in ERRORS])
def test_errors_in_words(call, kind, words):
    with pytest.raises(kind, match=f"^uptrain: {words}" if "no conv" not in words else words):
        call()
