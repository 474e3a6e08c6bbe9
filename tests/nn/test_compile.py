"""torch.compile: one graph, the same numbers."""

from __future__ import annotations

import pytest
import torch

from bochner.nn import RandomFeatureAttention
from support.attention import check_close


@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of itself
@pytest.mark.parametrize("spec", [None, "dense"])
@pytest.mark.parametrize("is_causal", [False, True])
def test_compiled_equals_eager(is_causal, spec):
    torch.manual_seed(0)
    attention, x = RandomFeatureAttention(16, 2, batch_first=True, spec=spec), torch.randn(2, 40, 16)

    def call(x):
        return attention(x, x, x, need_weights=False, is_causal=is_causal)[0]

    expected = call(x)
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    check_close(compiled(x), expected, 1e-5)
