"""
Can random signs find the keys that matter?
===========================================

Attention of trained language models is carried by few keys. A code of 64 random signs per key
is enough to find them: the candidates whose codes agree best with the query's are scored
exactly, and the best of them join the softmax. Here queries look up 8 of 1024 keys each.
"""

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import scaled_dot_product_attention

from bochner.nn import coded_attention

torch.manual_seed(0)
n, d, kept = 1024, 64, 32
k, v = torch.randn(2, 1, 1, n, d)
q = 1.5 * k[..., torch.randint(n, (n, 8)), :].mean(dim=-2) + 0.3 * torch.randn(1, 1, n, d)
scores = 4.0  # sharp attention, as in trained models
exact = scaled_dot_product_attention(q, k, v, scale=scores)

bits = (8, 16, 32, 64, 128, 256)
errors = []
for count in bits:
    found = coded_attention(
        q, k, v, count, window=1, anchors=0, kept=kept, candidates=4 * kept, scale=scores
    )
    errors.append(float((found - exact).norm() / exact.norm()))
    print(f"{count:3} bits per key: relative error {errors[-1]:.3f}")

# %%
# Two rivals that read as many exact keys: the nearest in position, and an oracle that knows
# the scores.
nearest = torch.arange(n)[:, None] - torch.arange(n)
window = (nearest.abs() <= kept // 2)[None, None]
best = (q @ k.mT).topk(kept).indices
oracle = torch.zeros(1, 1, n, n, dtype=torch.bool).scatter(-1, best, True)
rivals = {
    name: scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scores)
    for name, mask in (("window", window), ("oracle", oracle))
}
figure, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.loglog(bits, errors, "o-", label=f"{kept} keys found by codes")
for color, (name, found) in enumerate(rivals.items()):
    error = float((found - exact).norm() / exact.norm())
    ax.axhline(error, linestyle="--", color=f"C{color + 1}", label=f"{kept} keys by {name}")
    print(f"{name}: {error:.3f}")
ax.set(xlabel="bits per key", ylabel="relative error of the output")
ax.set_xticks(bits, bits)
ax.minorticks_off()
ax.legend()
plt.show()
