"""The evolution strategy: ask for points, tell their values, step; its state, saved and resumed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .._random import RNG, entropy_of, numbered_stream
from .._validation import check_count, check_option, check_positive, shown
from ..projections import Projection
from ._evaluation import EvaluationError
from ._gradient import ESTIMATORS, Candidates, GradientEstimate, as_values, as_vector, directions_of
from ._update_rules import SHAPINGS, UpdateRule, as_rule

_COUNTS = ("n_steps", "n_evaluations", "n_failed")


class EvolutionStrategy:
    r"""Minimise a black box step by step in your own loop: ask for points, evaluate them, tell their values.

    Use it if evaluations are not calls of a Python function, such as rollouts on a cluster, experiments or games.
    Otherwise `minimize` is simpler.

    Parameters
    ----------
    x0 : array (d,)
        Where the search starts.
    sigma : float
        Width of the smoothing, the scale of the perturbations.
    learning_rate : float
        Factor of each step.
    projection : Projection or str, optional
        Law of the directions; orthogonal ones by exact fast rotations by default.
    n_directions : int, optional
        Directions per step; d by default.
    estimator : {"antithetic", "forward", "plain"}
        As in `smoothed_gradient`.
    optimizer : {"adam", "momentum", "sgd"} or UpdateRule
        How gradients become steps.
    shaping : {"raw", "standardized", "ranks"}
        How the values of a step are transformed first: not at all, to mean zero and deviation one, or to ranks from
        -1/2 to 1/2.  The last two make the search invariant under scaling f, or under any increasing function of it;
        the gradient is then that of the shaped values.
    rng : int, numpy.random.Generator or None
        Source of randomness.

    Attributes
    ----------
    x : array (d,)
        The present centre.
    sigma, learning_rate : float
        May be changed between steps.
    estimate : GradientEstimate or None
        Gradient and standard error of the last step.
    n_steps, n_evaluations, n_failed : int
        Counts so far.

    See Also
    --------
    minimize : the whole loop.

    Notes
    -----
    The directions of step t are a pure function of the seed and of t.  So `ask` may be called twice, or not at all in
    the process that calls `tell`, and the state is small: the centre, the vectors of the optimiser, and counts.

    References
    ----------
    salimans2017, OMC Section 6.3.

    Examples
    --------
    >>> import numpy as np
    >>> from bochner.optimize import EvolutionStrategy
    >>> es = EvolutionStrategy(np.ones(8), sigma=0.1, learning_rate=0.1, rng=0)
    >>> for _ in range(100):
    ...     points = es.ask()
    ...     _ = es.tell([float(x @ x) for x in points])
    >>> bool(np.linalg.norm(es.x) < 0.1)
    True
    """

    def __init__(
        self,
        x0: Any,
        *,
        sigma: float = 0.1,
        learning_rate: float = 0.01,
        projection: Projection | str | None = None,
        n_directions: int | None = None,
        estimator: str = "antithetic",
        optimizer: str | UpdateRule = "adam",
        shaping: str = "raw",
        rng: RNG = None,
    ) -> None:
        owner = "EvolutionStrategy"
        self.x = as_vector(owner, "x0", x0)
        self.sigma, self.learning_rate = sigma, learning_rate
        self.projection = directions_of(owner, projection)
        n = len(self.x) if n_directions is None else n_directions
        self.n_directions = check_count(owner, "n_directions", n)
        check_option(owner, "estimator", estimator, ESTIMATORS)
        check_option(owner, "shaping", shaping, SHAPINGS)
        self.estimator, self.shaping, self.optimizer = estimator, shaping, as_rule(owner, optimizer)
        self.estimate: GradientEstimate | None = None
        self.n_steps = self.n_evaluations = self.n_failed = 0
        self._memory = {name: np.zeros_like(self.x) for name in self.optimizer.memory}
        self._entropy = entropy_of(rng)
        self._asked: Candidates | None = None

    @property
    def sigma(self) -> float:
        """Width of the smoothing."""
        return self._sigma

    @sigma.setter
    def sigma(self, value: Any) -> None:
        self._sigma, self._asked = check_positive("EvolutionStrategy", "sigma", value), None

    @property
    def learning_rate(self) -> float:
        """Factor of each step."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: Any) -> None:
        self._learning_rate = check_positive("EvolutionStrategy", "learning_rate", value)

    def ask(self) -> Candidates:
        """Return the points of this step, as a sequence of vectors that are computed on access."""
        if self._asked is None:
            stream = numbered_stream(self._entropy, self.n_steps)
            operator = self.projection.sample(len(self.x), self.n_directions, stream)
            self._asked = Candidates(self.x.copy(), self.sigma, operator, self.estimator)
        return self._asked

    def tell(self, values: Any) -> GradientEstimate:
        """Take a step, given the values at the points of `ask`.

        Parameters
        ----------
        values : array (len(ask()),)
            In the order of the points; NaN where an evaluation failed.  Its direction is then left out, and counted.

        Returns
        -------
        GradientEstimate
            What the step was made of, also kept as ``estimate``.
        """
        points = self.ask()
        values = as_values("EvolutionStrategy.tell", values)
        if values.shape != (len(points),):
            raise ValueError(
                f"EvolutionStrategy.tell: expected {len(points)} values, one per point of ask(), got shape {values.shape}."
            )
        try:
            found = points.estimate(values, SHAPINGS[self.shaping])
        except EvaluationError as error:
            raise EvaluationError(f"EvolutionStrategy.tell: {error}") from None
        memory = {name: vector.copy() for name, vector in self._memory.items()}  # a rule that fails changes nothing
        x = self.x - self.learning_rate * self.optimizer.step(found.gradient, memory, self.n_steps + 1)
        self.x, self._memory, self.estimate, self._asked = x, memory, found, None
        self.n_steps += 1
        self.n_evaluations += found.n_evaluations
        self.n_failed += found.n_failed
        return found

    def state_dict(self) -> dict[str, Any]:
        """State from which a strategy built with the same arguments continues bit for bit: arrays, numbers, strings."""
        return {
            "version": 1,
            "settings": self._settings(),
            "x": self.x.copy(),
            "memory": {name: vector.copy() for name, vector in self._memory.items()},
            "entropy": list(self._entropy),
            "sigma": self.sigma,
            "learning_rate": self.learning_rate,
            "counts": {name: getattr(self, name) for name in _COUNTS},
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state: the next step is the one that would have followed.

        Parameters
        ----------
        state : mapping
            What `state_dict` returned, of a strategy with the same directions, estimator, optimiser and shaping.
        """
        owner = "EvolutionStrategy.load_state_dict"
        state = _checked_state(owner, state)
        for name, own in self._settings().items():
            stored = state["settings"].get(name)
            if type(stored) is not type(own) or stored != own:
                raise ValueError(
                    f"{owner}: the state has {name} = {shown(stored)}, this strategy {own!r}; construct it with the "
                    f"same arguments."
                )
        memory = {name: self._stored(state["memory"], name) for name in self._memory}
        x, counts = (
            self._stored(state, "x"),
            {name: check_count(owner, name, state["counts"].get(name), 0) for name in _COUNTS},
        )
        sigma, rate = (check_positive(owner, name, state[name]) for name in ("sigma", "learning_rate"))
        self.x, self._memory, self._entropy = x, memory, tuple(state["entropy"])
        self.sigma, self.learning_rate = sigma, rate
        self.__dict__.update(counts)
        self.estimate = self._asked = None

    def _stored(self, arrays: Mapping[str, Any], name: str) -> np.ndarray:
        """A vector of a state, as long as the centre."""
        if name not in arrays:
            raise ValueError(f"EvolutionStrategy.load_state_dict: the state has no {name}.")
        vector = as_vector("EvolutionStrategy.load_state_dict", name, arrays[name])
        if vector.shape != self.x.shape:
            raise ValueError(
                f"EvolutionStrategy.load_state_dict: {name} must have shape {self.x.shape}, got {vector.shape}."
            )
        return vector

    def _settings(self) -> dict[str, Any]:
        names = ("projection", "n_directions", "estimator", "optimizer", "shaping")
        written = {
            name: value if isinstance(value := getattr(self, name), int | str) else repr(value) for name in names
        }
        return {"d": len(self.x)} | written

    def __repr__(self) -> str:
        error = math.nan if self.estimate is None else self.estimate.standard_error
        return (
            f"<EvolutionStrategy: d={len(self.x)}, {self.n_directions} directions of {self.projection!r}, "
            f"{self.n_steps} steps, standard error of the gradient {error:.3g}>"
        )


def _checked_state(owner: str, state: Any) -> Mapping[str, Any]:
    """A state whose parts are there and of the right kinds; what they hold is still to be checked."""
    kinds = {"version": int, "settings": Mapping, "memory": Mapping, "counts": Mapping, "entropy": list, "x": object}
    kinds |= {"sigma": object, "learning_rate": object}
    if not isinstance(state, Mapping) or not all(isinstance(state.get(name), kind) for name, kind in kinds.items()):
        raise ValueError(f"{owner}: state must be what state_dict() returned, got {shown(state)}.")
    if state["version"] != 1:
        raise ValueError(f"{owner}: expected a state of version 1, got version {state['version']}.")
    if len(state["entropy"]) != 4 or not all(type(n) is int and 0 <= n < 2**32 for n in state["entropy"]):
        raise ValueError(f"{owner}: entropy must be four integers of 32 bits, got {shown(state['entropy'])}.")
    return state
