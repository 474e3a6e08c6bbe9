"""Discrete features with separate rates and with any law: unbiased, with the error of theory, and better than one rate."""

import numpy as np
import pytest

from bochner import Approximation, kernels, maps, theory
from support.draws import squared_errors

RNG = np.random.default_rng(0)
DATA = RNG.standard_normal((60, 3)) * [0.8, 0.3, 0.1], RNG.standard_normal((50, 3)) * [0.6, 0.2, 0.4]
X = np.array([[0.6, 0.0, 0.1], [0.3, 0.3, 0.3], [-0.5, 0.2, -0.1]])  # an axis, ones, signs
Y = np.array([[0.5, 0.1, 0.0], [0.3, 0.3, 0.3], [0.4, -0.2, 0.3]])
LAWS = {
    "separate": maps.Poisson(separate=True),
    "given rates": maps.Poisson(rate=(0.3, 0.1, 0.05)),
    "best law": maps.Discrete(),
    "one law": maps.Discrete(weights=(1.0, 0.3, 0.05, 0.01)),
    "a law for each": maps.Discrete(weights=((1.0, 0.3, 0.05), (1.0, 0.1, 0.01), (1.0, 0.2, 0.02))),
}


def plan_of(name, kernel=None, m=4):
    return Approximation(kernel or kernels.Softmax(), LAWS[name], n_projections=m).plan(*DATA)


@pytest.mark.parametrize("kernel", [kernels.Softmax(), kernels.Gaussian(1.3)], ids=repr)
@pytest.mark.parametrize("name", LAWS)
@pytest.mark.swept(3)
def test_mean_and_error_are_those_of_theory(name, kernel):
    """Nine pairs, 1500 draws, |z| < 5."""
    plan = plan_of(name, kernel)
    grams = np.array([plan.draw(3, rng=seed).gram(X, Y) for seed in range(1500)])
    exact = kernel(X, Y)
    errors = (grams - exact) ** 2
    assert np.abs((grams.mean(0) - exact) / (grams.std(0, ddof=1) / np.sqrt(1500))).max() < 5
    assert np.abs((errors.mean(0) - plan.mse(X, Y)) / (errors.std(0, ddof=1) / np.sqrt(1500))).max() < 5


def test_the_error_of_a_common_rate_is_rejected():
    """The mutant that takes the mean of the rates for each of them."""
    plan = plan_of("separate")
    errors = squared_errors(plan, X, Y, 3000)
    common = float(np.mean(plan.map.rate))
    wrong = np.exp(theory.poisson_log_relative_mse(X[:, None], Y[None], common, 4)) * plan.kernel(X, Y) ** 2
    assert np.abs((errors.mean(0) - wrong) / (errors.std(0, ddof=1) / np.sqrt(3000))).max() > 5


def test_exponents_follow_the_law():
    """Frequencies of 20,000 exponents of each coordinate, tail included; |z| < 5."""
    plan = plan_of("a law for each", m=20_000)
    table = plan.draw(3, rng=0).to_arrays()["table"]
    p = plan.map.probabilities(3)
    for column, law in zip(table.T, p, strict=True):
        counts = np.array([(column == k).mean() for k in range(len(law))] + [(column >= len(law)).mean()])
        law = np.append(law, 1 - law.sum())
        assert np.abs((counts - law) / np.sqrt(law * (1 - law) / len(column))).max() < 5


def test_separate_rates_have_the_smaller_mean_log_error():
    one, own = (
        Approximation(kernels.Softmax(), m, n_projections=4).plan(*DATA) for m in (maps.Poisson(), LAWS["separate"])
    )
    assert np.log(own.mse(*DATA)).mean() < np.log(one.mse(*DATA)).mean() - 0.5


def test_the_best_law_has_the_smaller_mean_second_moment():
    """Its criterion, for one coordinate: no other law has a smaller mean error of the Gaussian kernel."""
    x, y = DATA[0][:, :1], DATA[1][:, :1]
    best = Approximation(kernels.Gaussian(), maps.Discrete(), n_projections=1).plan(x, y)
    error = best.mse(x, y).mean()
    for other in (maps.Poisson(), maps.Geometric()):
        assert error < Approximation(kernels.Gaussian(), other, n_projections=1).plan(x, y).mse(x, y).mean()
    law = np.array(best.map.weights[0])
    for k in range(4):
        changed = law.copy()
        changed[k] *= 1.2
        worse = Approximation(kernels.Gaussian(), maps.Discrete(weights=changed), n_projections=1)
        assert error < worse.mse(x, y).mean()


def test_no_law_beats_the_poisson_law_of_a_single_pair():
    x, y = np.array([0.8]), np.array([0.9])
    best = theory.poisson_log_relative_mse(x, y, 0.72)
    assert best < -70  # the variance of one coordinate vanishes, up to the rounding of 0.72
    assert theory.discrete_log_relative_mse(x, y, [0.5, 0.3, 0.1, 0.05, 0.02, 0.01] + [1e-3] * 20) > -5


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: maps.Poisson(rate=(1.0, -1.0)), ValueError, "Poisson: rate must be positive numbers"),
        (lambda: maps.Poisson(separate=1), TypeError, "Poisson: separate must be True or False"),
        (lambda: maps.Discrete(weights=(1.0, 0.0)), ValueError, r"weights must be positive numbers of shape \(K,\)"),
        (lambda: plan_of("given rates").draw(4), ValueError, "rate has 3 entries, the data has 4 columns"),
        (lambda: plan_of("a law for each").draw(4), ValueError, "weights have 3 rows, the data has 4 columns"),
    ],
)
def test_bad_arguments_are_refused_in_words(make, error, message):
    with pytest.raises(error, match=message):
        make()
