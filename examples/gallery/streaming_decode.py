"""Decoding a stream in constant time.

The time of a token with softmax attention grows with the context, and so does its cache. With random features both are
constant: the past is a sum.
"""

from __future__ import annotations

import time

import torch
from matplotlib.figure import Figure
from torch.nn.functional import scaled_dot_product_attention

from bochner.nn import AttentionFeatures, linear_attention

HEADS, WIDTH, ROWS = 8, 64, 128


def draw(smoke: bool = False) -> tuple[Figure, str]:
    """Time per token and bytes of the past, against the context."""
    contexts = (256, 1024) if smoke else (256, 1024, 4096, 16384, 65536)
    generator = torch.Generator().manual_seed(0)
    q, k, v = 0.3 * torch.randn(3, 1, HEADS, contexts[-1] + 8, WIDTH, generator=generator)
    features = AttentionFeatures("dense", n_projections=ROWS, generator=generator)
    times, memory = {"softmax": [], "random features": []}, {"softmax": [], "random features": []}
    for context in contexts:
        past, token = ([x[..., :context, :] for x in (q, k, v)], [x[..., context : context + 1, :] for x in (q, k, v)])
        _, state = linear_attention(*past, features=features, causal=True, return_state=True)
        times["softmax"].append(best(lambda t=token, p=past: scaled_dot_product_attention(t[0], p[1], p[2])))
        step = lambda t=token, s=state: linear_attention(*t, features=features, causal=True, state=s, return_state=True)  # noqa: E731
        times["random features"].append(best(step))
        memory["softmax"].append(2 * HEADS * context * WIDTH * 4 / 1e6)
        memory["random features"].append(HEADS * ROWS * (WIDTH + 2) * 4 / 1e6)
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name in times:
        left.loglog(contexts, [1e3 * t for t in times[name]], "o-", label=name)
        right.loglog(contexts, memory[name], "o-", label=name)
    left.set(xlabel="tokens before", ylabel="milliseconds per token", title="time")
    right.set(xlabel="tokens before", ylabel="MB", title="memory of the past")
    left.legend()
    ratio, size = (
        times["softmax"][-1] / times["random features"][-1],
        memory["softmax"][-1] / memory["random features"][-1],
    )
    return (
        figure,
        f"After {contexts[-1]:,} tokens softmax takes {ratio:.1f} times the time and {size:.0f} times the memory.",
    )


def best(call, repeats: int = 7) -> float:
    """Seconds of a call, best of several."""
    found = []
    with torch.no_grad():
        for _ in range(repeats):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
    return min(found)


if __name__ == "__main__":
    figure, caption = draw()
    figure.savefig("streaming_decode.png", dpi=120)
    print(caption)
