"""A cart-pole that is seen by a camera, and the attention policy that balances it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bochner.approximation import Approximation

PIXELS, KEPT, D, N_POSITION = 16, 8, 8, 6
"""Pixels of the camera, those that attention keeps, the dimension of queries and keys, and of the codes of positions."""

LAG = 4
"""Steps between the two images that a policy sees."""

ANGLES = np.linspace(-0.42, 0.42, PIXELS)
"""Angles of the pixels.  The pole falls at 0.21: what lies further out is background, which flickers."""

BACKGROUND = np.abs(ANGLES) > 0.23
CODES = np.stack([f(np.pi * k * np.arange(PIXELS) / PIXELS) for k in (1, 2, 3) for f in (np.sin, np.cos)], axis=1)
N_ATTENTION = (2 + N_POSITION) * D
N_PARAMETERS = 2 * N_ATTENTION + 2 * PIXELS

Scores = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Sums over queries of the attention that keys receive, (n, L, d) and (n, L, d) to (n, L)."""


def exact_scores(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """With the softmax kernel itself, in quadratic time."""
    return np.asarray(np.exp(queries @ keys.transpose(0, 2, 1)).sum(axis=1))


def implicit_scores(spec: Approximation, rng: np.random.Generator) -> Scores:
    """With features of the kernel, in linear time and without the attention matrix."""
    phi = spec.draw(D, rng)

    def scores(queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        shape = (*queries.shape[:2], -1)
        total = phi.queries(queries.reshape(-1, D)).reshape(shape).sum(axis=1)
        return np.asarray((phi.keys(keys.reshape(-1, D)).reshape(shape) @ total[:, :, None])[:, :, 0])

    return scores


def initial(rng: np.random.Generator) -> np.ndarray:
    """Random queries and keys, and a controller that does nothing."""
    attention = rng.standard_normal(2 * N_ATTENTION) / np.sqrt(D)
    return np.concatenate([attention, np.zeros(2 * PIXELS)])


def push_right(thetas: np.ndarray, now: np.ndarray, before: np.ndarray, scores: Scores) -> np.ndarray:
    """Whether policies push to the right, given two images each, (n,).

    A pixel is a token: its two intensities and a code of its position.  Queries and keys are linear functions of tokens
    with length one.  The pixels that receive the most attention are kept (rank attention with masking), and the sign of
    a linear function of these is the action.
    """
    n = len(thetas)
    tokens = np.concatenate([now[:, :, None], before[:, :, None], np.broadcast_to(CODES, (n, *CODES.shape))], axis=2)
    queries, keys = (
        _normalized(tokens @ thetas[:, start : start + N_ATTENTION].reshape(n, -1, D)) for start in (0, N_ATTENTION)
    )
    received = scores(queries, keys)
    kept = received >= np.partition(received, PIXELS - KEPT, axis=1)[:, PIXELS - KEPT, None]
    controller = thetas[:, 2 * N_ATTENTION :].reshape(n, 2, PIXELS)
    return np.asarray((controller * np.stack([now * kept, before * kept], axis=1)).sum(axis=(1, 2)) > 0)


def steps_balanced(thetas: np.ndarray, scores: Scores, horizon: int, seed: int, *, one_start: bool) -> np.ndarray:
    """Steps until the cart-pole of gymnasium falls, for one policy per row; all from one state, or each from its own."""
    try:
        import gymnasium
    except ImportError:
        raise ImportError("a cart-pole needs gymnasium; pip install -e 'lab[rl]' in a clone.") from None
    n = len(thetas)
    env: Any = gymnasium.make_vec("CartPole-v1", n, "vector_entry_point", max_episode_steps=horizon + 1).unwrapped
    env.reset(seed=seed)
    if one_start:
        env.state = np.repeat(env.state[:, :1], n, axis=1)
    flicker = np.random.default_rng(seed)
    up, total = np.ones(n, dtype=bool), np.zeros(n)
    images = [_image(env.state[2], flicker)]
    for _ in range(horizon):
        now, before, actions = images[-1], images[0], np.zeros(n, dtype=np.int64)
        actions[up] = push_right(thetas[up], now[up], before[up], scores)
        total += up
        up &= ~env.step(actions)[2]
        if not up.any():
            break
        images = [*images[-LAG:], _image(env.state[2], flicker)]
    return total


def _image(angles: np.ndarray, flicker: np.random.Generator) -> np.ndarray:
    """A blurred pole in front of a flickering background, (n, PIXELS)."""
    image = np.exp(-((ANGLES - angles[:, None]) ** 2) / (2 * 0.06**2))
    image[:, BACKGROUND] = flicker.uniform(size=int(BACKGROUND.sum()))
    return np.asarray(image)


def _normalized(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12))
