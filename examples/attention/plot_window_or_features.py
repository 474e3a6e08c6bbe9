"""
A longer window, or features beside it?
=======================================

At equal cost, an exact key is worth more than a feature as long as attention is local, and
less where it is broad. The picture has the error of causal attention with 96 keys or features
per query, split between a window and features of all other keys, for three spreads of
attention.
"""

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import scaled_dot_product_attention

from bochner.nn import AttentionFeatures, linear_attention

torch.manual_seed(0)
n, d, cost = 512, 32, 96
windows = (8, 24, 48, 72, 88)
positions = torch.cumsum(torch.randn(n, d), dim=0)

figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
for name, locality in {"broad": 0.0, "between": 0.06, "local": 0.12}.items():
    q, k, v = 0.5 * torch.randn(3, 1, 1, n, d)
    q, k = q + locality * positions, k + locality * positions
    exact = scaled_dot_product_attention(q, k, v, is_causal=True)
    errors = []
    for window in windows:
        features = AttentionFeatures(
            "dense", n_projections=cost - window, generator=torch.Generator().manual_seed(1)
        )
        found = linear_attention(q, k, v, features=features, causal=True, window=window)
        errors.append(float((found - exact).norm() / exact.norm()))
    (line,) = ax.semilogy(windows, errors, "o-", label=name)
    distance = torch.arange(n)[:, None] - torch.arange(n)
    mask = (distance >= 0) & (distance < cost)
    alone = scaled_dot_product_attention(q, k, v, attn_mask=mask)
    error = float((alone - exact).norm() / exact.norm())
    ax.semilogy([cost], [error], "s", color=line.get_color())
    print(f"{name}: window of {cost} alone {error:.3f}; best split {min(errors):.3f}")
ax.set(
    xlabel=f"window, of a cost of {cost}; squares: window alone",
    ylabel="relative error of the output",
)
ax.legend(title="attention")
plt.show()
