"""Robots of gymnasium, many copies at a time: one policy per copy, all from the same state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Act = Callable[[np.ndarray, float], np.ndarray]
"""Observations (n, n_observations) at a time in seconds to actions (n, n_actions) in [-1, 1], row i by policy i."""


@dataclass(frozen=True)
class Task:
    """A locomotion task of gymnasium: forward velocity minus a cost of the controls.

    Attributes
    ----------
    name : str
        The environment, as gymnasium knows it.
    control_cost : float
        Weight of the squared controls in the reward.
    heights : tuple of float, optional
        Heights of the torso outside of which the episode ends; None where it never does.
    """

    name: str
    control_cost: float
    heights: tuple[float, float] | None = None


SWIMMER = Task("Swimmer-v5", control_cost=1e-4)
ANT = Task("Ant-v5", control_cost=0.05, heights=(0.2, 1.0))


class Policy(Protocol):
    """A family of policies, by a vector of parameters."""

    @property
    def n_parameters(self) -> int:
        """Length of the vector."""

    def initial(self, rng: np.random.Generator) -> np.ndarray:
        """Parameters to start from."""

    def act(self, thetas: np.ndarray) -> Act:
        """The actions of one policy per row of parameters."""


class Robot:
    """Copies of a robot that are simulated side by side, with Euler steps in place of Runge-Kutta steps.

    An Euler step takes a quarter of the time.  Model, time step, controls and starts are gymnasium's.

    Attributes
    ----------
    n_observations, n_actions : int
        Positions without the first two, which are those in the plane, and velocities; controls.
    """

    def __init__(self, task: Task) -> None:
        try:
            import gymnasium
            import mujoco
            from mujoco import rollout
        except ImportError as error:
            raise ImportError(
                f"a robot needs gymnasium and mujoco ({error}); pip install -e 'lab[rl]' in a clone."
            ) from None
        self.task = task
        self._env: Any = gymnasium.make(task.name).unwrapped
        self._model: Any = self._env.model
        self._model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        self._data = mujoco.MjData(self._model)
        self._everything = mujoco.mjtState.mjSTATE_FULLPHYSICS  # time, positions, velocities
        self._get, self._rollout = mujoco.mj_getState, rollout.rollout
        self._size = mujoco.mj_stateSize(self._model, self._everything)
        self.n_observations = self._model.nq - 2 + self._model.nv
        self.n_actions = self._model.nu

    def start(self, seed: int) -> np.ndarray:
        """The state in which gymnasium starts an episode of that seed."""
        self._env.reset(seed=seed)
        state = np.empty(self._size)
        self._get(self._model, self._env.data, state, self._everything)
        return state

    def returns(self, policy: Policy, thetas: np.ndarray, start: np.ndarray, horizon: int) -> np.ndarray:
        """Sums of rewards over so many steps, or until a copy falls, by row of parameters."""
        n, act = len(thetas), policy.act(thetas)
        states = np.tile(start, (n, 1))
        alive, total = np.ones(n, dtype=bool), np.zeros(n)
        for step in range(horizon):
            actions = act(states[:, 3 : 3 + self.n_observations], step * self._env.dt)
            controls = np.repeat(actions[:, None], self._env.frame_skip, axis=1)
            after = self._rollout(self._model, self._data, states, controls)[0][:, -1]
            velocity = (after[:, 1] - states[:, 1]) / self._env.dt
            total += alive * (velocity - self.task.control_cost * (actions**2).sum(axis=1))
            states = after
            if self.task.heights is not None:
                low, high = self.task.heights
                alive &= (low <= states[:, 3]) & (states[:, 3] <= high)
        return total

    def episode(self, policy: Policy, theta: np.ndarray, seed: int, most_steps: int) -> float:
        """The return of one episode of gymnasium's own environment, with its integrator and all its rewards."""
        import gymnasium

        act = policy.act(theta[None])
        env = gymnasium.make(self.task.name, max_episode_steps=most_steps)
        observation, _ = env.reset(seed=seed)
        total, steps, done = 0.0, 0, False
        while not done:
            action = act(observation[None, : self.n_observations], steps * self._env.dt)[0]
            observation, reward, terminated, truncated, _ = env.step(action)
            total, steps, done = total + float(reward), steps + 1, terminated or truncated
        env.close()
        return total
