"""The strategy and the loop: exact resume, shapings, stopping rules, failures, torch."""

from __future__ import annotations

import copy
import json
import math
from multiprocessing.pool import ThreadPool

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from bochner.optimize import (
    SGD,
    Adam,
    EvaluationError,
    EvaluationWarning,
    EvolutionStrategy,
    ModuleParameters,
    Momentum,
    minimize,
)
from bochner.projections import IID, Orthogonal
from bochner.rotations import Hadamard, Kac


def sphere(x):
    return float((x - 1) @ (x - 1))


def steps(es, n, f=sphere):
    for _ in range(n):
        es.tell([f(x) for x in es.ask()])
    return es


@pytest.mark.parametrize("error", (ValueError, KeyboardInterrupt))
def test_a_rule_that_fails_leaves_the_strategy_as_it_was(error):
    class Fragile(Momentum):
        def step(self, gradient, memory, t):
            memory["velocity"] += 1
            raise error

    es = EvolutionStrategy(np.ones(4), optimizer=Fragile(), rng=0)
    before = es.state_dict()
    with pytest.raises(error):
        es.tell([sphere(x) for x in es.ask()])
    np.testing.assert_equal(es.state_dict(), before)


@pytest.mark.parametrize("optimizer", ("sgd", "momentum", "adam", Adam(0.8)), ids=str)
@pytest.mark.parametrize("shaping", ("raw", "standardized", "ranks"))
@pytest.mark.parametrize("estimator", ("antithetic", "forward", "plain"))
def test_resume_bit_for_bit(optimizer, shaping, estimator):
    def new(seed):
        options = dict(optimizer=optimizer, shaping=shaping, estimator=estimator, projection=Orthogonal(Kac()))
        return EvolutionStrategy(np.zeros(6), rng=seed, **options)

    whole, first = steps(new(0), 6), steps(new(0), 3)
    first.ask()  # points that were asked for and not told are asked for again
    state = first.state_dict()
    second = new(1)
    second.load_state_dict(state)
    steps(second, 3)
    assert (second.x == whole.x).all()
    assert (second.n_steps, second.n_evaluations, second.n_failed) == (whole.n_steps, whole.n_evaluations, 0)
    assert second.estimate.standard_error == whole.estimate.standard_error


def test_state_is_plain_and_apart():
    es = steps(EvolutionStrategy(np.zeros(3), rng=0), 2)
    state = es.state_dict()
    json.dumps({name: value for name, value in state.items() if name not in ("x", "memory")})
    state["x"][:] = 7
    state["memory"]["mean"][:] = 7
    assert (es.x != 7).all() and (es.state_dict()["memory"]["mean"] != 7).all()


@pytest.mark.parametrize(
    "change, message",
    [
        ({"version": 2}, "expected a state of version 1, got version 2"),
        ({"entropy": 3}, "must be what state_dict"),
        ({"x": np.zeros(4)}, r"x must have shape \(3,\), got \(4,\)"),
        ({"memory": {}}, "the state has no mean"),
        ({"settings": {"d": 4}}, "the state has d = 4, this strategy 3"),
        ({"sigma": -1.0}, "sigma must be a positive number"),
    ],
)
def test_states_of_another_strategy_are_refused(change, message):
    es = EvolutionStrategy(np.zeros(3), rng=0)
    with pytest.raises(ValueError, match=message):
        es.load_state_dict(es.state_dict() | change)


def test_points_are_a_sequence():
    for estimator, n in {"antithetic": 10, "forward": 6, "plain": 5}.items():
        points = EvolutionStrategy(np.arange(5.0), estimator=estimator, projection=Orthogonal(Hadamard()), rng=0).ask()
        dense = np.asarray(points)
        assert len(points) == n and dense.shape == (n, 5)
        np.testing.assert_allclose([points[i] for i in range(-n, n)], np.concatenate([dense, dense]), atol=1e-15)
        np.testing.assert_allclose(points[1:3], dense[1:3], atol=1e-15)
        np.testing.assert_allclose(list(points), dense, atol=0)
        with pytest.raises(IndexError):
            points[n]


def test_memory_of_points_is_used_again_only_when_it_is_free():
    """Whoever holds a matrix of points, a view or a row of it keeps its numbers; a loop that drops them gets old memory."""
    es = EvolutionStrategy(np.arange(4.0), rng=0)
    steps = []
    for _ in range(5):
        steps.append((np.asarray(es.ask())[1:3], np.array(list(es.ask()))[1:3]))
        es.tell(np.arange(8.0))
    assert all((held == expected).all() for held, expected in steps)
    del steps
    addresses = []
    for _ in range(6):
        points = np.asarray(es.ask())
        addresses.append(points.ctypes.data)
        es.tell([sphere(x) for x in points])
    assert len(set(addresses)) <= 2
    twin = copy.deepcopy(es)
    assert (np.asarray(twin.ask()) == np.asarray(es.ask())).all()


def test_ask_is_a_pure_function_of_seed_and_step():
    a, b = (EvolutionStrategy(np.zeros(4), rng=0) for _ in range(2))
    assert (np.asarray(a.ask()) == np.asarray(b.ask())).all()
    values = [sphere(x) for x in a.ask()]
    a.tell(values)
    b.tell(values)
    assert (np.asarray(a.ask()) == np.asarray(b.ask())).all()
    a.sigma = 0.5
    np.testing.assert_allclose(np.asarray(a.ask()) - a.x, 5 * (np.asarray(b.ask()) - b.x), atol=1e-14)


def test_update_rules():
    g, memory = np.array([1.0, -2.0]), {"velocity": np.zeros(2), "mean": np.zeros(2), "square": np.zeros(2)}
    assert (SGD().step(g, memory, 1) == g).all()
    Momentum(0.5).step(g, memory, 1)
    np.testing.assert_allclose(Momentum(0.5).step(g, memory, 2), 1.5 * g)
    np.testing.assert_allclose(Adam().step(g, memory, 1), np.sign(g), rtol=1e-7)
    np.testing.assert_allclose(Adam().step(g, memory, 2), np.sign(g), rtol=1e-7)


def test_shapings_are_invariant():
    def run(shaping, f):
        return steps(EvolutionStrategy(np.zeros(5), shaping=shaping, optimizer="sgd", rng=0), 5, f).x

    np.testing.assert_allclose(run("ranks", sphere), run("ranks", lambda x: math.exp(sphere(x))), atol=1e-14)
    np.testing.assert_allclose(
        run("standardized", sphere), run("standardized", lambda x: 9 * sphere(x) + 2), atol=1e-12
    )
    assert (run("standardized", lambda x: 1.0) == 0).all() and (run("ranks", lambda x: 1.0) == 0).all()


def test_minimize_returns_what_scipy_returns():
    seen = []
    found = minimize(sphere, np.zeros(6), learning_rate=0.1, target=1e-3, callback=seen.append, rng=0)
    assert isinstance(found, OptimizeResult) and found.success and found.status == 0
    assert found.fun == sphere(found.x) <= 1e-3
    assert len(seen) == found.nit and found.nfev == 13 * found.nit + 1 and found.n_failed == 0
    assert found.jac.shape == (6,) and found.jac_standard_error > 0


@pytest.mark.parametrize("estimator, per_iteration", [("antithetic", 13), ("forward", 7), ("plain", 7)])
def test_budget_is_never_exceeded(estimator, per_iteration):
    calls = []
    found = minimize(
        lambda x: calls.append(1) or sphere(x), np.zeros(6), estimator=estimator, max_evaluations=50, rng=0
    )
    assert found.nfev == len(calls) <= 50 and not found.success and "budget" in found.message
    assert found.nit == 49 // per_iteration


def test_stopping_rules():
    assert "iterations" in minimize(sphere, np.zeros(3), max_iterations=4, rng=0).message
    assert minimize(sphere, np.zeros(3), gradient_tolerance=100.0, rng=0).status == 1
    stuck = minimize(lambda x: 1.0, np.zeros(3), patience=5, rng=0)
    assert stuck.status == 2 and stuck.nit == 5
    assert minimize(sphere, np.zeros(3), callback=lambda result: result.nit == 3, rng=0).nit == 3

    def stop(result):
        raise StopIteration

    assert minimize(sphere, np.zeros(3), callback=stop, rng=0).status == 5


def test_workers_change_nothing():
    options = dict(max_iterations=5, rng=0)
    serial = minimize(sphere, np.zeros(20), **options)
    for workers in (1, 3):
        with ThreadPool(workers) as pool:
            found = minimize(sphere, np.zeros(20), map=pool.map, **options)
        assert (found.x == serial.x).all() and found.fun == serial.fun


def test_progress_bar(capsys):
    minimize(sphere, np.zeros(3), max_iterations=3, verbose=True, rng=0)
    assert "minimize" in capsys.readouterr().err
    minimize(sphere, np.zeros(3), max_iterations=3, rng=0)
    assert capsys.readouterr().err == ""


def test_failures_lose_nothing_else():
    def fragile(x):
        if x[0] > 0.5:
            raise RuntimeError("crash")
        return sphere(x)

    with pytest.warns(EvaluationWarning, match="the first: RuntimeError: crash"):
        found = minimize(fragile, np.zeros(6), sigma=0.3, n_directions=60, max_iterations=30, projection=IID(), rng=0)
    assert found.n_failed > 0 and found.nit == 30 and found.fun < sphere(np.zeros(6))


def test_a_step_without_any_value_ends_the_search():
    calls = []

    def breaks(x):
        calls.append(1)
        return sphere(x) if len(calls) < 20 else math.inf

    with pytest.warns(EvaluationWarning, match="the value is inf"):
        found = minimize(breaks, np.zeros(3), rng=0)
    assert found.status == 6 and not found.success and math.isfinite(found.fun)
    with pytest.raises(EvaluationError, match="f failed at x0 and at every later centre; the first: TypeError"):
        minimize(lambda x: None, np.zeros(3), rng=0)


def test_nan_told_is_counted():
    es = EvolutionStrategy(np.zeros(4), rng=0)
    found = es.tell([math.nan, *(sphere(x) for x in list(es.ask())[1:])])
    assert (found.n_failed, found.n_directions, es.n_failed) == (1, 3, 1)
    with pytest.raises(EvaluationError, match=r"EvolutionStrategy.tell: every direction has a failed evaluation"):
        es.tell(np.full(8, math.nan))
    with pytest.raises(ValueError, match=r"expected 8 values, one per point of ask\(\), got shape \(3,\)"):
        es.tell(np.zeros(3))


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"learning_rate": 0}, "learning_rate must be a positive number"),
        ({"optimizer": "adm"}, "optimizer must be one of 'sgd', 'momentum', 'adam', got 'adm'"),
        ({"shaping": "rank"}, "shaping must be one of 'raw', 'standardized', 'ranks'"),
        ({"callback": 3}, "callback must be a function of the result so far, got 3"),
        ({"max_evaluations": 0}, "max_evaluations must be an integer of at least 1"),
        ({"patience": 0}, "patience must be an integer"),
        ({"gradient_tolerance": -1}, "gradient_tolerance must be a positive number"),
        ({"target": math.inf}, "target must be a finite number, got inf"),
        ({"verbose": 1}, "verbose must be True or False"),
    ],
)
def test_arguments(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        minimize(sphere, np.zeros(3), **arguments)


def test_module_parameters():
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1).to(torch.bfloat16))
    module[0].bias.requires_grad_(False)
    kept = module[0].bias.clone()
    parameters = ModuleParameters(module)
    theta = parameters.flatten()
    assert theta.shape == (12 + 5,) == (parameters.size,) and theta.dtype == np.float64
    parameters.restore(np.arange(17.0))
    assert module[0].weight.flatten().tolist() == list(range(12)) and module[1].bias.dtype == torch.bfloat16
    assert (module[0].bias == kept).all()
    assert (ModuleParameters(module, trainable_only=False).flatten().shape) == (21,)
    parameters.restore(theta)
    assert (parameters.flatten() == theta).all()
    with pytest.raises(ValueError, match="last axis is 17"):
        parameters.restore(np.zeros(3))
    with pytest.raises(TypeError, match=r"module must be a torch.nn.Module, got 3"):
        ModuleParameters(3)


def test_training_a_torch_module():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    X = torch.randn(50, 3)
    y = (X @ torch.tensor([1.0, -2.0, 0.5]))[:, None]
    parameters = ModuleParameters(torch.nn.Linear(3, 1))

    def loss(theta):
        with torch.no_grad():
            return torch.nn.functional.mse_loss(parameters.restore(theta)(X), y)

    found = minimize(loss, parameters.flatten(), learning_rate=0.1, max_iterations=150, rng=0)
    assert found.fun < 0.01
