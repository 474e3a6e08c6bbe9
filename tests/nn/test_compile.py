"""torch.compile and torch.export of the module: one graph, the same numbers."""

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


@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of itself
def test_a_choice_of_constants_is_not_compiled():
    """One graph cannot choose constants from data and says so; graphs with breaks choose them outside."""
    torch.manual_seed(0)
    x = torch.randn(2, 40, 16)
    for fullgraph in (True, False):
        attention = RandomFeatureAttention(16, 2, batch_first=True, spec="dense")
        compiled = torch.compile(attention, backend="eager", fullgraph=fullgraph)
        if fullgraph:
            with pytest.raises(Exception, match="chosen from the first batch; call it once before it is compiled"):
                compiled(x, x, x)
        else:
            check_close(compiled(x, x, x)[0], attention(x, x, x)[0], 1e-5)


@pytest.mark.filterwarnings("ignore")  # torch's exporter warns of itself
@pytest.mark.parametrize("is_causal", [False, True])
def test_export_with_any_length(is_causal):
    torch.manual_seed(0)
    attention, x = RandomFeatureAttention(16, 2, batch_first=True), torch.randn(2, 150, 16)

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x, padding):
            return self.attention(x, x, x, key_padding_mask=padding, need_weights=False, is_causal=is_causal)[0]

    model, padding = Model(), torch.zeros(2, 150, dtype=torch.bool)
    length = {1: torch.export.Dim("length", min=8, max=4096)}
    with torch.no_grad():
        model(x, padding)
        exported = torch.export.export(model, (x, padding), dynamic_shapes={"x": length, "padding": length}).module()
        for n in (8, 200):
            inputs = torch.randn(2, n, 16), torch.arange(n).expand(2, n) >= torch.tensor([[n], [n - 3]])
            check_close(exported(*inputs), model(*inputs), 1e-5)
