"""Policies with few parameters, how they are learned from returns alone, and what the learning curves say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bochner.optimize import EvolutionStrategy

from ..._estimates import Estimate
from ..._experiment import Experiment, PowerCheck, Results
from ..._figures import band
from ..._verdicts import Finding, not_worse, superior
from .._robots import Act, Policy
from ._matrices import rows_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ToeplitzNetwork:
    """A network of tanh layers whose matrices are constant along diagonals, with biases in the hidden layers.

    A matrix of a rows and b columns has a + b - 1 parameters.  For the Swimmer, 8 -> 41 -> 41 -> 2, they are
    48 + 81 + 42 and 41 + 41 biases: the 253 parameters of the paper.
    """

    widths: tuple[int, ...]

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """Shapes of the matrices."""
        return [(a, b) for b, a in zip(self.widths, self.widths[1:], strict=False)]

    @property
    def n_parameters(self) -> int:
        """Diagonals and biases."""
        return sum(a + b - 1 for a, b in self.shapes) + sum(self.widths[1:-1])

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Diagonals of variance one over the width of the input, and no biases."""
        diagonals = [rng.standard_normal(a + b - 1) / np.sqrt(b) for a, b in self.shapes]
        return np.concatenate([*diagonals, np.zeros(sum(self.widths[1:-1]))])

    def act(self, thetas: np.ndarray) -> Act:
        """Network i for row i."""
        sizes = [a + b - 1 for a, b in self.shapes] + list(self.widths[1:-1])
        pieces = np.split(thetas, np.cumsum(sizes)[:-1], axis=1)
        matrices = [
            piece[:, np.arange(a)[:, None] - np.arange(b) + b - 1]
            for piece, (a, b) in zip(pieces, self.shapes, strict=False)
        ]
        biases = [*pieces[len(matrices) :], np.zeros((len(thetas), self.widths[-1]))]

        def actions(observations: np.ndarray, time: float) -> np.ndarray:
            x = observations[:, :, None]
            for W, b in zip(matrices, biases, strict=True):
                x = np.tanh(W @ x + b[:, :, None])
            return np.asarray(x[:, :, 0])

        return actions


@dataclass(frozen=True)
class LinearGait:
    """Tanh of a linear function of some observations and of the sine and cosine of a clock."""

    observed: tuple[int, ...]
    n_actions: int
    frequency: float

    @property
    def n_parameters(self) -> int:
        """Entries of the matrix."""
        return (len(self.observed) + 2) * self.n_actions

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Zeros: the robot stands still."""
        return np.zeros(self.n_parameters)

    def act(self, thetas: np.ndarray) -> Act:
        """Matrix i for row i."""
        W = thetas.reshape(len(thetas), self.n_actions, -1)

        def actions(observations: np.ndarray, time: float) -> np.ndarray:
            phase = 2 * np.pi * self.frequency * time
            clock = np.tile([np.sin(phase), np.cos(phase)], (len(observations), 1))
            x = np.concatenate([observations[:, self.observed], clock], axis=1)
            return np.asarray(np.tanh((W @ x[:, :, None])[:, :, 0]))

        return actions


class Simulator(Protocol):
    """What policies are learned on."""

    def start(self, seed: int) -> Any:
        """A state."""

    def returns(self, policy: Policy, thetas: np.ndarray, start: Any, horizon: int) -> np.ndarray:
        """Returns from that state, one per row of parameters."""


def learn(
    robot: Simulator, policy: Policy, method: str, seed: int, p: Mapping[str, Any], rng: np.random.Generator
) -> tuple[list[float], np.ndarray]:
    """The learning curve of a policy with the directions of a method, and its parameters at the end.

    The start of the search and that of its rollouts depend on the seed only, so that methods can be compared seed by
    seed.
    """
    start = robot.start(seed)
    search = EvolutionStrategy(
        policy.initial(np.random.default_rng(seed)),
        sigma=p["sigma"],
        learning_rate=p["learning rate"],
        projection=rows_of(method),
        n_directions=p["directions"],
        estimator="forward",
        rng=rng,
    )
    curve = []
    for _ in range(p["steps"]):
        returns = robot.returns(policy, np.asarray(search.ask()), start, p["horizon"])
        curve.append(float(returns[0]))  # that of the present policy
        search.tell(-returns)
    return [*curve, float(robot.returns(policy, search.x[None], start, p["horizon"])[0])], search.x


class PolicySearch(Experiment):
    """Learning curves of a policy by method and seed; what the experiments on robots share."""

    def parts(self, p: Mapping[str, Any]) -> list[str]:
        """One per method and seed."""
        return [f"{method} {seed}" for method in self.methods for seed in p["seeds"]]

    def curves(self, results: Results, method: str) -> np.ndarray:
        """Returns by seed and step."""
        return np.array([results.parts[f"{method} {seed}"]["curve"] for seed in results.parameters["seeds"]])

    def plot(self, results: Results, figure: Figure) -> None:
        """Learning curves."""
        self.draw_curves(results, figure.subplots())

    def power(self, results: Results) -> PowerCheck:
        """The first policy next to the final ones, and IID as the control that must not be as good as exact directions."""
        curves = {method: self.curves(results, method) for method in self.methods}
        first, last = float(curves[self.methods[0]][:, 0].mean()), {m: c[:, -1] for m, c in curves.items()}
        learned = [m for m, c in curves.items() if superior(Estimate.of(c[:, -1] - c[:, 0]), "").holds is True]
        names = ", ".join(learned) or "no method"
        sentence = f"The first policies have a return of {first:.2f}; the final ones are above it with {names}."
        control = {"IID", "ORF"} <= set(self.methods) and self.not_below(results, ["IID"], "ORF").holds is True
        if control:
            sentence += " IID, the control, is as good as ORF by the same rule."
        return PowerCheck(
            bool(learned) and not control,
            sentence,
            (("first policy", first), *((method, float(values.mean())) for method, values in last.items())),
        )

    def draw_curves(self, results: Results, ax: Any) -> None:
        """Means over seeds, with bands of two standard errors."""
        for k, method in enumerate(self.methods):
            returns = Estimate.of(self.curves(results, method))
            band(ax, np.arange(len(returns.mean)), returns, method, k)
        ax.set(xlabel=f"steps of {results.parameters['directions']} directions", ylabel="return")
        ax.legend(fontsize="x-small")

    def above(self, results: Results, methods: Sequence[str], other: str) -> Finding:
        """Judge that returns averaged over the training are higher, by intervals of differences by seed."""
        gains = self._gains(results, methods, other)
        shown = ", ".join(f"{method} {gain.mean:+.1f} +- {gain.error:.1f}" for method, gain in gains.items())
        mean = self.curves(results, other).mean()
        return superior(Estimate.stack(gains.values()), f"{shown}, over the {mean:.1f} of {other}.")

    def not_below(self, results: Results, methods: Sequence[str], other: str) -> Finding:
        """Judge that they are not below those of another method by more than a tenth of these; IID is shown as a control."""
        mean = float(self.curves(results, other).mean())
        gains = self._gains(results, methods, other)
        control = self._gains(results, ["IID"], other)
        shown = ", ".join(f"{method} {1 + gain.mean / mean:.2f}" for method, gain in (gains | control).items())
        return not_worse(Estimate.stack(gains.values()), 0.1 * mean, f"Return over that of {other}: {shown}.")

    def _gains(self, results: Results, methods: Sequence[str], other: str) -> dict[str, Estimate]:
        """Differences of returns averaged over the training, by seed."""
        return {
            method: Estimate.of((self.curves(results, method) - self.curves(results, other)).mean(axis=1))
            for method in methods
        }
