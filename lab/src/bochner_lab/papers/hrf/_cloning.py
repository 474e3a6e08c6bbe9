"""A point that passes an obstacle on either side, and clones of its expert: by energies of actions, or by regression."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STEP, RADIUS, REACH, LONGEST = 0.1, 0.35, 0.2, 45
"""Length of a step, radius of the obstacle around the origin, distance that reaches the goal, and steps of an episode."""
GOAL = np.array([0.0, 1.0])
D = 5
"""Dimension of a pair of position and direction."""

Policy = Callable[[np.ndarray], np.ndarray]
"""Positions (n, 2) to directions (n,), in radians."""
Features = Callable[[np.ndarray], np.ndarray]


def pairs(positions: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Positions (..., 2) and directions (...) as vectors of length one, (..., D)."""
    angle = np.stack([np.cos(directions), np.sin(directions), np.ones_like(directions)], axis=-1)
    z = np.concatenate([positions, angle], axis=-1)
    return np.asarray(z / np.linalg.norm(z, axis=-1, keepdims=True))


def demonstrations(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Positions and directions of n episodes of an expert that passes on a random side, with a little noise."""
    s, side = _starts(n, rng), rng.choice([-1.0, 1.0], n)
    positions, directions = [], []
    for _ in range(LONGEST):
        s, side = (rows[np.linalg.norm(s - GOAL, axis=1) > 0.75 * REACH] for rows in (s, side))
        waypoint = np.stack([0.6 * side, np.zeros_like(side)], axis=1)
        x, y = (np.where(s[:, 1:] < 0, waypoint, GOAL) - s).T
        a = np.arctan2(y, x) + 0.1 * rng.standard_normal(len(s))
        positions.append(s)
        directions.append(a)
        s = s + STEP * np.stack([np.cos(a), np.sin(a)], axis=1)
    return np.concatenate(positions), np.concatenate(directions)


def success(policy: Policy, n: int, rng: np.random.Generator) -> float:
    """The share of n episodes that reach the goal without touching the obstacle."""
    s = _starts(n, rng)
    reached, touched = np.zeros((2, n), dtype=bool)
    for _ in range(LONGEST):
        a = policy(s)
        s = s + STEP * np.stack([np.cos(a), np.sin(a)], axis=1)
        touched |= np.linalg.norm(s, axis=1) < RADIUS
        reached |= (np.linalg.norm(s - GOAL, axis=1) < REACH) & ~touched
    return float(reached.mean())


def implicit_clone(
    phi: Features, positions: np.ndarray, directions: np.ndarray, rng: np.random.Generator, *, others: int = 15
) -> Policy:
    """The policy that takes the direction of the highest score, a linear function of features of pairs.

    The score of the demonstrated direction is raised against those of other, random ones (InfoNCE).  That is convex in
    the weights, which L-BFGS finds.
    """
    from scipy.optimize import minimize

    n, penalty = len(positions), 1e-4
    offered = np.concatenate([directions[:, None], rng.uniform(-np.pi, np.pi, (n, others))], axis=1)
    F = phi(pairs(np.repeat(positions[:, None], others + 1, axis=1), offered).reshape(-1, D))
    scale = np.sqrt((F**2).mean(axis=0)).max()
    F = F / scale

    def loss(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = (F @ w).reshape(n, -1)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        value = -np.log(p[:, 0]).mean() + penalty * w @ w
        p[:, 0] -= 1
        return value, F.T @ p.ravel() / n + 2 * penalty * w

    w = minimize(loss, np.zeros(F.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": 100}).x / scale
    grid = np.linspace(-np.pi, np.pi, 64, endpoint=False)

    def policy(s: np.ndarray) -> np.ndarray:
        offered = pairs(np.repeat(s[:, None], len(grid), axis=1), np.broadcast_to(grid, (len(s), len(grid))))
        return np.asarray(grid[(phi(offered.reshape(-1, D)) @ w).reshape(len(s), -1).argmax(axis=1)])

    return policy


def straight(s: np.ndarray) -> np.ndarray:
    """The policy that knows nothing of the obstacle."""
    x, y = (GOAL - s).T
    return np.asarray(np.arctan2(y, x))


def explicit_clone(positions: np.ndarray, directions: np.ndarray, seed: int) -> Policy:
    """The policy that takes the mean direction at a position, by kernel ridge regression."""
    from bochner.learn import KernelRidge

    model = KernelRidge(gamma="scale", map=None, n_components=256, alpha=1.0, random_state=seed).fit(
        positions, np.stack([np.cos(directions), np.sin(directions)], axis=1)
    )

    def policy(s: np.ndarray) -> np.ndarray:
        x, y = model.predict(s).T
        return np.asarray(np.arctan2(y, x))

    return policy


def _starts(n: int, rng: np.random.Generator) -> np.ndarray:
    return np.stack([rng.uniform(-0.2, 0.2, n), np.full(n, -1.0)], axis=1)
