"""Searches with a budget of evaluations: ours with every coupling, and those of other libraries."""

from __future__ import annotations

import functools
import importlib.util
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from bochner.extending import Projection
from bochner.optimize import EvolutionStrategy
from bochner.projections import IID, Orthogonal, Quadrature, Simplex
from bochner.rotations import Butterfly, Haar, Hadamard, Kac, MultiHadamard, StructuredGivens, UnpaddedHadamard

COUPLINGS: dict[str, Projection] = {
    "iid": IID(),
    "haar": Orthogonal(Haar()),
    "hadamard": Orthogonal(Hadamard()),
    "unpadded-hadamard": Orthogonal(UnpaddedHadamard()),
    "multi-hadamard": Orthogonal(MultiHadamard()),
    "kac": Orthogonal(Kac()),
    "structured-givens": Orthogonal(StructuredGivens()),
    "butterfly": Orthogonal(Butterfly()),
    "simplex": Simplex(Hadamard()),
    "orthoplex": Quadrature(StructuredGivens(), "orthoplex"),
}
DENSE = ("haar",)
"""Couplings that take O(d^3) per step, and so run in small dimensions only."""


class Budget:
    """Evaluates a problem and remembers the lowest value so far.

    Attributes
    ----------
    used : int
        Evaluations so far.
    history : list of (int, float)
        Evaluations, and the lowest value so far, after every call.
    """

    def __init__(self, problem: Callable[[np.ndarray], np.ndarray], most: int) -> None:
        self._problem, self.most = problem, most
        self.used, self.history = 0, [(0, 1.0)]

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Values of rows, which are counted."""
        values = self._problem(X)
        self.used += len(X)
        self.history.append((self.used, min(self.history[-1][1], float(np.min(values)))))
        return values

    def allows(self, n: int) -> bool:
        """Whether as many more evaluations are left."""
        return self.used + n <= self.most


def ours(projection: Projection, f: Budget, d: int, n: int, step: float, seed: int) -> None:
    """Antithetic directions, ranks and Adam; width and learning rate are the step, and the rate falls to zero."""
    es = EvolutionStrategy(
        np.zeros(d), sigma=step, projection=projection, n_directions=n, optimizer="adam", shaping="ranks", rng=seed
    )
    n_steps = f.most // (2 * n + 1)
    for t in range(n_steps):
        es.learning_rate = step * (1 - t / n_steps)
        es.tell(f(np.asarray(es.ask())))
        f(es.x[None])


def evosax(f: Budget, d: int, n: int, step: float, seed: int) -> None:
    """OpenES with the same population, ranks, Adam and schedule."""
    import jax

    n_steps = f.most // (2 * n + 1)
    es = _open_es(d, n, step, n_steps)
    key, first = jax.random.split(jax.random.PRNGKey(seed))
    state = es.init(first, jax.numpy.zeros(d), es.default_params)
    for _ in range(n_steps):
        key, asked, told = jax.random.split(key, 3)
        points, state = es.ask(asked, state, es.default_params)
        state, _ = es.tell(told, points, jax.numpy.asarray(f(np.asarray(points))), state, es.default_params)
        f(np.asarray(state.mean)[None])


@functools.cache
def _open_es(d: int, n: int, step: float, n_steps: int) -> Any:
    """One strategy per setting, since each is compiled anew."""
    import jax
    import optax
    from evosax.algorithms import Open_ES

    rate, width = optax.linear_schedule(step, 0.0, n_steps), optax.constant_schedule(step)
    return Open_ES(2 * n, jax.numpy.zeros(d), optimizer=optax.adam(rate), std_schedule=width)


def cma(f: Budget, d: int, n: int, step: float, seed: int) -> None:
    """CMA-ES with its own population; a diagonal covariance in large dimensions, as its documentation advises."""
    from cma import CMAEvolutionStrategy

    with np.errstate(all="ignore"):  # its own restarts and stopping rules compute with infinities
        es = CMAEvolutionStrategy(np.zeros(d), step, {"seed": seed + 1, "verbose": -9, "CMA_diagonal": d > 200})
        while f.allows(es.popsize + 1):
            points = np.array(es.ask())
            es.tell(list(points), f(points).tolist())
            f(es.mean[None])


def nevergrad(f: Budget, d: int, n: int, step: float, seed: int) -> None:
    """NGOpt, which chooses an optimiser by dimension and budget; the step is its initial deviation."""
    import nevergrad as ng

    space = ng.p.Array(init=np.zeros(d))
    space.set_mutation(sigma=step)
    space.random_state.seed(seed)
    search = ng.optimizers.NGOpt(space, budget=f.most - 1)
    while f.allows(2):
        point = search.ask()
        search.tell(point, float(f(point.value[None])[0]))
    f(search.provide_recommendation().value[None])


PEERS: dict[str, Callable[[Budget, int, int, float, int], None]] = {f.__name__: f for f in (evosax, cma, nevergrad)}
METHODS: dict[str, Callable[[Budget, int, int, float, int], None]] = {
    **{name: functools.partial(ours, projection) for name, projection in COUPLINGS.items()},
    **PEERS,
}


def absent() -> list[str]:
    """Libraries that are not installed here."""
    return [name for name in PEERS if importlib.util.find_spec(name) is None]


def search(method: str, problem: Any, budget: int, n: int, step: float, seed: int) -> list[tuple[int, float]]:
    """The history of one search; warnings of other libraries are about their own inner workings."""
    f = Budget(problem, budget)
    with warnings.catch_warnings():
        if method in PEERS:
            warnings.simplefilter("ignore")
        METHODS[method](f, problem.d, n, step, seed)
    return f.history
