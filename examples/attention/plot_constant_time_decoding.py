"""
From which context is a constant state faster?
==============================================

The time of a token with softmax attention grows with the context, and so does its cache. With
random features both are constant: the past is a sum. One layer of 8 heads, one CPU thread; the
crossover is where the lines meet.
"""

import time

import matplotlib.pyplot as plt
import torch
from torch.nn.functional import scaled_dot_product_attention

from bochner.nn import AttentionFeatures, linear_attention

heads, width, rows = 8, 64, 128
contexts = (256, 1024, 4096, 16384)
generator = torch.Generator().manual_seed(0)
q, k, v = 0.3 * torch.randn(3, 1, heads, contexts[-1] + 8, width, generator=generator)
features = AttentionFeatures("dense", n_projections=rows, generator=generator)


def milliseconds(call):
    """Time of a call, best of seven."""
    found = []
    with torch.no_grad():
        for _ in range(7):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return 1e3 * min(found)


times = {"softmax": [], "random features": []}
for context in contexts:
    past, token = (
        [x[..., :context, :] for x in (q, k, v)],
        [x[..., context : context + 1, :] for x in (q, k, v)],
    )
    _, state = linear_attention(*past, features=features, causal=True, return_state=True)
    times["softmax"].append(
        milliseconds(lambda t=token, p=past: scaled_dot_product_attention(t[0], p[1], p[2]))
    )
    times["random features"].append(
        milliseconds(
            lambda t=token, s=state: linear_attention(
                *t, features=features, causal=True, state=s, return_state=True
            )
        )
    )
memory = {
    "softmax": [2 * heads * context * width * 4 / 1e6 for context in contexts],
    "random features": [heads * rows * (width + 2) * 4 / 1e6] * len(contexts),
}
for name in times:
    print(
        f"{name}, {contexts[-1]:,} tokens before: {times[name][-1]:.2f} ms per token, {memory[name][-1]:.2g} MB"
    )

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for name in times:
    left.loglog(contexts, times[name], "o-", label=name)
    right.loglog(contexts, memory[name], "o-", label=name)
left.set(xlabel="tokens before", ylabel="milliseconds per token", title="time")
right.set(xlabel="tokens before", ylabel="MB", title="memory of the past")
left.legend()
plt.show()
