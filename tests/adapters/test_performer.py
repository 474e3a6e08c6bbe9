"""The attention of performer-pytorch from its checkpoints."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import bochner.adapters as adapters  # noqa: E402


@pytest.fixture
def theirs():
    with warnings.catch_warnings():  # of distutils and torch.cuda.amp, which it imports
        warnings.simplefilter("ignore")
        pytest.importorskip("performer_pytorch", reason="performer-pytorch is not installed")
        from performer_pytorch import performer_pytorch
    return performer_pytorch


def heads(seed, d=16):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 3, 20, d, generator=generator) for _ in range(3)]


@pytest.mark.parametrize("causal", [False, True])
def test_a_checkpoint_computes_the_same(theirs, causal):
    """Without the constants that they add to features and denominators, to rounding; with them, close for small norms."""
    fast = theirs.FastAttention(16, nb_features=40, causal=causal)
    ours = adapters.PerformerAttention(16, 40, causal=causal)
    ours.load_state_dict(fast.state_dict())
    q, k, v = heads(0)
    features = [
        theirs.softmax_kernel(x, projection_matrix=fast.projection_matrix, is_query=query, eps=0.0)
        for x, query in ((q, True), (k, False))
    ]
    if causal:
        weights = (features[0] @ features[1].mT).tril()
        expected = weights @ v / weights.sum(dim=-1, keepdim=True)
    else:
        expected = theirs.linear_attention(*features, v)
    torch.testing.assert_close(ours(q, k, v), expected, atol=2e-5, rtol=1e-4)
    assert (ours(q / 4, k / 4, v) - fast(q / 4, k / 4, v)).abs().max() < 0.02


def test_a_whole_model_takes_it(theirs):
    model = theirs.Performer(dim=32, depth=2, heads=2, dim_head=16, nb_features=64).eval()
    x = torch.randn(1, 12, 32, generator=torch.Generator().manual_seed(0))
    before = model(x)
    for module in list(model.modules()):
        if isinstance(module, theirs.Attention):
            ours = adapters.PerformerAttention(16, 64)
            ours.load_state_dict(module.fast_attention.state_dict())
            module.fast_attention = ours
    assert (model(x) - before).abs().max() < 0.05 * before.abs().max()


@pytest.mark.parametrize("needs, block", [("gpytorch", 0), ("botorch", 1), ("torch", 2)])
@pytest.mark.filterwarnings("ignore")
def test_examples_of_the_page_run(needs, block):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    page = (Path(__file__).parents[2] / "docs" / "adapters.md").read_text()
    found: dict = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[block], found)
    if needs == "botorch":
        assert found["best"].shape == (8, 4)
    elif needs == "torch":
        assert found["out"].shape == (1, 8, 100, 64) and found["out"].isfinite().all()
    else:
        assert found["mean"].shape == (100,)


def test_features_follow_the_matrix():
    attention = adapters.PerformerAttention(8, 24)
    q, k, v = heads(1, 8)
    before = attention(q, k, v)
    kept = attention.features
    assert attention.features is kept
    with torch.no_grad():
        attention.projection_matrix.mul_(0.5)
    assert attention.features is not kept
    assert not torch.allclose(attention(q, k, v), before)


def test_rows_are_orthogonal_as_theirs():
    W = adapters.PerformerAttention(8, 8).projection_matrix
    products = W @ W.T
    assert (products - products.diag().diag()).abs().max() < 1e-4


def test_refusals(monkeypatch):
    with pytest.raises(ValueError, match=r"^PerformerAttention: nb_features must be an integer of at least 1, got 0"):
        adapters.PerformerAttention(8, 0)
    with pytest.raises(TypeError, match=r"^PerformerAttention: causal must be True or False"):
        adapters.PerformerAttention(8, 8, causal="yes")
    with pytest.raises(AttributeError, match=r"has no attribute 'Kernel'"):
        adapters.Kernel  # noqa: B018
    monkeypatch.setitem(adapters._HOMES, "FeatureKernel", ("_absent", 'gpytorch: pip install "gpytorch>=1.13"'))
    with pytest.raises(ImportError, match=r"^bochner\.adapters\.FeatureKernel needs gpytorch: pip install"):
        adapters.FeatureKernel  # noqa: B018
