"""The Minitaur, a robot with four legs of two motors each, as pybullet simulates it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._robots import Policy

LEGS = ("front_left", "back_left", "front_right", "back_right")
DIRECTIONS = np.repeat([-1.0, 1.0], 4)
"""Directions of the motors; the left ones are mirrored."""
STANDING, KNEE, SWING = np.pi / 2, -2.1834, 0.5
"""Angles of motors and knees of a standing robot, and how far an action moves a motor from there."""
STEPS_PER_ACTION, TIME_STEP, STRENGTH = 2, 0.01, 3.5


class Minitaur:
    """One robot on a plane; policies are simulated one after the other.

    Observations are the roll and pitch components of the orientation and the eight angles of the motors, minus those of a
    standing robot.  The return is the distance in metres to the front until the robot falls.
    """

    def __init__(self) -> None:
        try:
            import pybullet
            import pybullet_data
            from pybullet_utils.bullet_client import BulletClient
        except ImportError as error:
            raise ImportError(
                f"the Minitaur needs pybullet ({error}); pip install -e 'lab[minitaur]' in a clone."
            ) from None
        self._bullet: Any = BulletClient(connection_mode=pybullet.DIRECT)
        self._bullet.setAdditionalSearchPath(pybullet_data.getDataPath())
        self._bullet.setGravity(0, 0, -10)
        self._bullet.setTimeStep(TIME_STEP)
        self._bullet.setPhysicsEngineParameter(numSolverIterations=30)
        self._bullet.loadURDF("plane.urdf")
        self._body = self._bullet.loadURDF("quadruped/minitaur.urdf", [0, 0, 0.2])
        self._assemble()

    def _assemble(self) -> None:
        """Bend the legs, join the two halves of each, free the knees, and let the robot come to rest."""
        bullet, body = self._bullet, self._body
        joints = {bullet.getJointInfo(body, i)[1].decode(): i for i in range(bullet.getNumJoints(body))}
        self._motors = [joints[f"motor_{leg}{side}_joint"] for leg in LEGS for side in "LR"]
        knees = [joints[f"knee_{leg}{side}_link"] for leg in LEGS for side in "LR"]
        for motor, knee, direction in zip(self._motors, knees, DIRECTIONS, strict=True):
            bullet.resetJointState(body, motor, direction * STANDING)
            bullet.resetJointState(body, knee, direction * KNEE)
        for left, right in zip(knees[::2], knees[1::2], strict=True):
            ends = ([0, 0.005, 0.2], [0, 0.01, 0.2])
            bullet.createConstraint(body, right, body, left, bullet.JOINT_POINT2POINT, [0, 0, 0], *ends)
        bullet.setJointMotorControlArray(body, knees, bullet.VELOCITY_CONTROL, forces=[0.0] * len(knees))
        for _ in range(25):
            self._step(np.zeros(len(self._motors)))
        self._at_rest = bullet.saveState()

    def start(self, seed: int) -> int:
        """Standing at rest, whatever the seed."""
        return int(self._at_rest)

    def returns(self, policy: Policy, thetas: np.ndarray, start: int, horizon: int) -> np.ndarray:
        """Distances, one per row of parameters."""
        return np.array([self._distance(policy, theta, start, horizon) for theta in thetas])

    def _distance(self, policy: Policy, theta: np.ndarray, start: int, horizon: int) -> float:
        self._bullet.restoreState(start)
        act = policy.act(theta[None])
        first, orientation = self._pose()
        position = first
        for step in range(horizon):
            angles = np.array([state[0] for state in self._bullet.getJointStates(self._body, self._motors)])
            observation = np.concatenate([orientation[:2], angles * DIRECTIONS - STANDING])
            self._step(act(observation[None], step * STEPS_PER_ACTION * TIME_STEP)[0])
            position, orientation = self._pose()
            upright = 1 - 2 * (orientation[:2] ** 2).sum()  # the vertical component of the robot's vertical axis
            if upright < 0.85 or position[2] < 0.1:
                break
        return float(position[0] - first[0])

    def _pose(self) -> tuple[np.ndarray, np.ndarray]:
        position, orientation = self._bullet.getBasePositionAndOrientation(self._body)
        return np.array(position), np.array(orientation)

    def _step(self, action: np.ndarray) -> None:
        gains = [1.0] * len(self._motors)
        self._bullet.setJointMotorControlArray(
            self._body,
            self._motors,
            self._bullet.POSITION_CONTROL,
            targetPositions=(STANDING + SWING * action) * DIRECTIONS,
            positionGains=gains,
            velocityGains=gains,
            forces=[STRENGTH] * len(self._motors),
        )
        for _ in range(STEPS_PER_ACTION):
            self._bullet.stepSimulation()
