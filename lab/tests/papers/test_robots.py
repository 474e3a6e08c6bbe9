"""Robots and their policies: simulations agree with gymnasium, and a seed fixes a rollout and a whole search."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bochner_lab.papers._robots import ANT, SWIMMER, Robot
from bochner_lab.papers.omc import _minitaur, _policies, minitaur, quadruped, swimmer

pytest.importorskip("gymnasium.envs.mujoco")


@pytest.fixture(scope="module", params=[SWIMMER, ANT], ids=lambda task: task.name)
def robot(request):
    return Robot(request.param)


class Swing:
    """Controls that depend on the state, the time and one parameter."""

    n_parameters = 1

    def __init__(self, n_actions):
        self.n_actions = n_actions

    def act(self, thetas):
        ones = np.ones((1, self.n_actions))
        return lambda observations, time: np.tanh(
            thetas * observations[:, -2:].mean(axis=1, keepdims=True) + np.cos(time) * ones
        )


def test_the_policy_of_the_swimmer_has_the_253_parameters_of_the_paper():
    robot = Robot(SWIMMER)
    assert swimmer.POLICY.n_parameters == swimmer.SEARCH["directions"] == 253
    assert swimmer.POLICY.initial(np.random.default_rng(0)).shape == (253,)
    assert (robot.n_observations, robot.n_actions) == (swimmer.POLICY.widths[0], swimmer.POLICY.widths[-1])


def test_the_policy_of_the_ant_has_the_96_parameters_of_the_paper():
    robot, joints = Robot(ANT), quadruped.POLICY.observed[-8:]
    assert quadruped.POLICY.n_parameters == quadruped.SEARCH["directions"] == 96
    assert quadruped.POLICY.n_actions == robot.n_actions
    start = robot.start(0)
    np.testing.assert_array_equal(start[3:][list(joints)], robot._env.data.qpos[7:])


def test_toeplitz_networks_equal_dense_ones(seed):
    from scipy.linalg import toeplitz

    rng = np.random.default_rng(seed)
    policy = _policies.ToeplitzNetwork((3, 4, 2))
    theta, x = rng.standard_normal((2, policy.n_parameters)), rng.standard_normal((2, 3))
    W1, W2, b = theta[1, :6], theta[1, 6:11], theta[1, 11:]
    hidden = np.tanh(toeplitz(W1[2:], W1[2::-1]) @ x[1] + b)
    np.testing.assert_allclose(policy.act(theta)(x, 0.0)[1], np.tanh(toeplitz(W2[3:], W2[3::-1]) @ hidden))


def test_returns_are_those_of_gymnasium(robot):
    env, total, policy = robot._env, 0.0, Swing(robot.n_actions)
    observation, _ = env.reset(seed=3)
    for step in range(20):
        action = policy.act(np.ones((1, 1)))(observation[None, : robot.n_observations], step * env.dt)[0]
        before = env.data.qpos[0]  # gymnasium's own velocity of the ant is that of the last substep but one
        observation = env.step(action)[0]
        total += (env.data.qpos[0] - before) / env.dt - robot.task.control_cost * (action**2).sum()
    found = robot.returns(policy, np.ones((2, 1)), robot.start(3), 20)
    np.testing.assert_allclose(found, total, rtol=1e-4)


def test_a_seed_fixes_a_rollout(robot):
    def rollout(n, seed):
        return robot.returns(Swing(robot.n_actions), np.ones((n, 1)), robot.start(seed), 5)

    first = rollout(3, 1)
    assert not np.array_equal(first, rollout(3, 2))
    np.testing.assert_array_equal(first, rollout(3, 1))
    np.testing.assert_array_equal(first[:1], rollout(1, 1))


def test_a_seed_fixes_a_search():
    one, part = swimmer.Swimmer(), "KAC {}".format
    p = one.profiles["smoke"] | {"directions": 4, "horizon": 3, "episode": 3}
    runs = [one.run(part(seed), p, np.random.default_rng(0)) for seed in (0, 0, 1)]
    assert runs[0] == runs[1] != runs[2]
    assert len(runs[0]["curve"]) == p["steps"] + 1


def test_the_minitaur_stands_and_walks():
    pytest.importorskip("pybullet")
    robot = _minitaur.Minitaur()
    policy, start = minitaur.POLICY, robot.start(0)
    assert policy.n_parameters == minitaur.SEARCH["directions"] == 96
    swinging = np.zeros((8, 12))
    swinging[:, -1] = [1, 1, -1, -1, 1, 1, -1, -1]
    still, moved = robot.returns(policy, np.stack([np.zeros(96), swinging.ravel()]), start, 20)
    assert abs(still) < 0.01 < abs(moved)


@pytest.mark.parametrize(
    "module, make, extra", [("mujoco", lambda: Robot(SWIMMER), "rl"), ("pybullet", _minitaur.Minitaur, "minitaur")]
)
def test_a_missing_simulator_is_named(module, make, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=rf"pip install -e 'lab\[{extra}\]'"):
        make()
