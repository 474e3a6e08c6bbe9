"""scikit-learn's own tests of what these estimators replace, with their classes exchanged for ours.

The tests of the installed scikit-learn are run as they are, apart from the classes whose names they use.  Those that are not
expected to pass are listed with their reasons, and must fail: an exception that is no longer needed is an error.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, Product, Sum, WhiteKernel
from sklearn.gaussian_process.kernels import ConstantKernel as C
from sklearn.gaussian_process.tests import test_gpr
from sklearn.tests import test_kernel_approximation, test_kernel_ridge, test_random_projection

from bochner import kernels, learn

pytestmark = pytest.mark.filterwarnings("ignore")  # warnings of both libraries are tested elsewhere


class RBFSampler(learn.RandomFeatures):
    """`RandomFeatures` with the parameters of scikit-learn."""

    kernel, map, projection, n_jobs = "gaussian", None, None, 1

    def __init__(self, *, gamma=1.0, n_components=100, random_state=None):
        self.gamma, self.n_components, self.random_state = gamma, n_components, random_state

    @property
    def _gamma(self):
        return 1 / (2 * self.kernel_.lengthscale**2)


class Nystroem(learn.RandomFeatures):
    """Landmarks, with the default bandwidth of scikit-learn."""

    map, projection = "landmarks", None

    def __init__(
        self,
        kernel="rbf",
        *,
        gamma=None,
        coef0=None,
        degree=None,
        kernel_params=None,
        n_components=100,
        random_state=None,
        n_jobs=1,
    ):
        self.kernel, self.gamma, self.coef0, self.degree = kernel, gamma, coef0, degree
        self.kernel_params, self.n_components, self.random_state = kernel_params, n_components, random_state
        self.n_jobs = n_jobs

    def _parameters(self):
        has_bandwidth = self.kernel in ("rbf", "laplacian")
        gamma = 1 / self.n_features_in_ if self.gamma is None and has_bandwidth else self.gamma
        return super()._parameters()._replace(gamma=gamma)


class GaussianRandomProjection(learn.RandomProjection):
    """`RandomProjection` with independent Gaussian rows."""

    projection, n_jobs = "iid", 1

    def __init__(self, n_components="auto", *, eps=0.1, compute_inverse_components=False, random_state=None):
        self.n_components, self.eps, self.random_state = n_components, eps, random_state
        self.compute_inverse_components = compute_inverse_components


class KernelRidge(learn.KernelRidge):
    """`KernelRidge` with a landmark at every row, which makes the kernel exact."""

    def __init__(self, alpha=1, *, kernel="linear", gamma=None, degree=3, coef0=1, kernel_params=None):
        super().__init__(
            kernel, gamma=gamma, map="landmarks", n_components=100, alpha=alpha, fit_intercept=False, standardize=False
        )
        self.degree, self.coef0, self.kernel_params = degree, coef0, kernel_params


class GaussianProcessRegressor(learn.GaussianProcess):
    """`GaussianProcess` with a landmark at every row, which makes it exact, and kernels of scikit-learn.

    It takes the Gaussian kernel, times a constant, plus white noise.
    """

    def __init__(
        self,
        kernel=None,
        *,
        alpha=1e-10,
        optimizer="fmin_l_bfgs_b",
        n_restarts_optimizer=0,
        normalize_y=False,
        copy_X_train=True,
        n_targets=None,
        random_state=None,
    ):
        self.given = C(1.0) * RBF(1.0) if kernel is None else kernel
        parts = {type(part): part for part in summands(self.given)}
        self.alpha, self.optimizer, self.copy_X_train, self.n_targets = alpha, optimizer, copy_X_train, n_targets
        self.n_restarts_optimizer = n_restarts_optimizer
        scale, constant, white = parts[RBF], parts.get(C), parts.get(WhiteKernel)
        free = {"lengthscale": scale, "amplitude": constant, "noise": white}
        super().__init__(
            kernels.Gaussian(scale.length_scale),
            map="landmarks",
            n_components=60,
            noise=alpha if white is None else white.noise_level,
            amplitude=1.0 if constant is None else constant.constant_value,
            optimize=[n for n, part in free.items() if part is not None and part.n_dims and optimizer is not None],
            ard=scale.anisotropic,
            n_restarts=n_restarts_optimizer,
            fit_intercept=normalize_y,
            normalize_y=normalize_y,
            random_state=0 if random_state is None else random_state,
            n_jobs=1,
        )

    def fit(self, X, y):
        self._seen = X, y
        return super().fit(X, y)

    @property
    def kernel_(self):
        """The kernel of scikit-learn with the parameters that were found."""
        found = clone(self.given)
        for name in found.get_params():
            if name.endswith("length_scale"):
                found.set_params(**{name: self.features_.spec.kernel.lengthscale})
            if name.endswith("constant_value"):
                found.set_params(**{name: self.amplitude_})
            if name.endswith("noise_level"):
                found.set_params(**{name: self.noise_})
        return found

    @property
    def _y_train_std(self):
        return self.scaling_.scale

    def log_marginal_likelihood(self, theta=None, eval_gradient=False):
        """At logarithms of the parameters in the order of scikit-learn."""
        if theta is None:
            return self.log_marginal_likelihood_value_
        kernel = self.given.clone_with_theta(theta)
        parts = {type(part): part for part in summands(kernel)}
        noise = parts[WhiteKernel].noise_level if WhiteKernel in parts else self.alpha
        amplitude = parts[C].constant_value if C in parts else 1.0
        full = np.log([noise, amplitude, *np.atleast_1d(parts[RBF].length_scale)])
        value, gradient = super().log_marginal_likelihood(full, *self._seen, eval_gradient=True)
        order = [n.rpartition("__")[2] for n in (h.name for h in kernel.hyperparameters if not h.fixed)]
        places = {"noise_level": [0], "constant_value": [1], "length_scale": range(2, len(full))}
        chosen = [place for name in order for place in places[name]]
        return (value, gradient[chosen]) if eval_gradient else np.float64(value)


def summands(kernel):
    """The parts of a constant times a Gaussian kernel plus noise; a TypeError for other kernels."""
    if isinstance(kernel, Product) and {type(kernel.k1), type(kernel.k2)} == {C, RBF}:
        return [kernel.k1, kernel.k2]
    if isinstance(kernel, Sum) and WhiteKernel in (type(kernel.k1), type(kernel.k2)):
        return [*summands(kernel.k1), *summands(kernel.k2)]
    if type(kernel) in (RBF, WhiteKernel):
        return [kernel]
    raise TypeError(f"no counterpart of {kernel}")


SUITES: dict[ModuleType, dict[str, type]] = {
    test_kernel_approximation: {"RBFSampler": RBFSampler, "Nystroem": Nystroem},
    test_random_projection: {"GaussianRandomProjection": GaussianRandomProjection},
    test_kernel_ridge: {"KernelRidge": KernelRidge},
    test_gpr: {"GaussianProcessRegressor": GaussianProcessRegressor},
}
LISTS = {"all_RandomProjection": [GaussianRandomProjection], "all_DenseRandomProjection": [GaussianRandomProjection]}

OFFSETS = "features are pairs of cosines and sines on rows with names of their own"
KERNELS = "it uses a kernel that is not in this library, a function of two rows, or a Gram matrix in place of rows"
UNFITTED = "an estimator that is not fitted has no features, and says so"
MESSAGE = "the message has other words"
COLUMN = "a target given as a column is predicted as a column"
EXCEPTIONS: dict[str, str | tuple[str, Callable[[dict], bool]]] = {
    "test_rbf_sampler_fitted_attributes_dtype": OFFSETS,
    "test_rbf_sampler_dtype_equivalence": OFFSETS,
    "test_nystroem_approximation": KERNELS,
    "test_nystroem_default_parameters": KERNELS,
    "test_nystroem_poly_kernel_params": KERNELS,
    "test_nystroem_callable": KERNELS,
    "test_nystroem_precomputed_kernel": KERNELS,
    "test_nystroem_component_indices": "landmarks are points, at features_.spec.map.points, and may come from k-means",
    "test_too_many_samples_to_find_a_safe_embedding": MESSAGE,
    "test_kernel_ridge_precomputed": KERNELS,
    "test_kernel_ridge_precomputed_kernel_unchanged": KERNELS,
    "test_kernel_ridge_sample_weights": KERNELS,
    "test_gpr_interpolation_structured": KERNELS,
    "test_lml_without_cloning_kernel": "kernels are values and do not change",
    "test_prior": UNFITTED,
    "test_no_fit_default_predict": UNFITTED,
    "test_sample_y_shape_with_prior": UNFITTED,
    "test_predict_shape_with_prior": UNFITTED,
    "test_custom_optimizer": "there is one optimiser",
    "test_gpr_correct_error_message": KERNELS,
    "test_bound_check_fixed_hyperparameter": KERNELS,
    "test_gpr_predict_input_not_modified": KERNELS,
    "test_warning_bounds": "lengthscales have no bounds to be close to",
    "test_gpr_fit_error": "the noise is one number, and not one for each row",
    "test_gpr_lml_error": "a gradient at no parameters is not asked for in this way",
    "test_gpr_predict_error": MESSAGE,
    "test_y_multioutput": "functions of two targets are other draws than those of one",
    "test_gpr_consistency_std_cov_non_invertible_kernel": COLUMN,
    "test_n_targets_error": "the number of targets is not a parameter",
    "test_predict_shapes": (COLUMN, lambda arguments: arguments["n_targets"] == 1),
    "test_sample_y_shapes": (COLUMN, lambda arguments: arguments["n_targets"] == 1),
}
DIFFERENCE = (
    "with noise of 1e-10 the sum of squared residuals, a difference of sums over rows, keeps six digits, and so do the "
    "amplitude and the likelihood that are found from it"
)
NOT_RUN: dict[str, str | tuple[str, Callable[[dict], bool]]] = {
    "test_nystroem_approximation_array_api": "needs an environment variable; test_array_api.py is about other libraries",
    "test_lml_gradient": "scikit-learn expects it to fail, and it does where the Gram matrix is singular",
    "test_sample_statistics": "it draws 300000 functions; test_gaussian_process.py compares fewer",
    "test_lml_precomputed": (DIFFERENCE, lambda arguments: has_free_amplitude(arguments["kernel"])),
    "test_converged_to_local_maximum": (DIFFERENCE, lambda arguments: has_free_amplitude(arguments["kernel"])),
    "test_duplicate_input": (
        "two searches on rows that are 1e-15 apart agree in six digits, and it compares seven",
        lambda arguments: has_free_amplitude(arguments["kernel"]),
    ),
}


def has_free_amplitude(kernel):
    """Whether a kernel of scikit-learn is a Gaussian times a constant that is optimised."""
    return isinstance(kernel, Product) and any(type(part) is C and part.n_dims for part in (kernel.k1, kernel.k2))


def cases():
    """Every test that uses a class of ours, with every combination of its parameters that does."""
    for module, classes in SUITES.items():
        for name, test in vars(module).items():
            if not name.startswith("test_") or not inspect.isfunction(test) or isinstance(NOT_RUN.get(name), str):
                continue
            marks = [mark.args for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
            named = bool({*classes, *LISTS} & set(test.__code__.co_names))
            for number, values in enumerate(itertools.product(*(tuple(choices) for _, choices in marks))):
                arguments = {}
                for (names, _), value in zip(marks, values, strict=True):
                    names = [n.strip() for n in names.split(",")]
                    value = getattr(value, "values", value)  # of pytest.param
                    arguments |= zip(names, value if len(names) > 1 else [value], strict=True)
                kinds = [
                    v.__name__ for v in arguments.values() if inspect.isclass(v) and v.__module__.startswith("sklearn")
                ]
                if kinds and not set(kinds) <= set(classes):
                    continue  # of a class that is not replaced
                if (named or kinds) and not is_listed(NOT_RUN, name, arguments):
                    arguments = {n: classes.get(getattr(v, "__name__", ""), v) for n, v in arguments.items()}
                    yield pytest.param(module, name, arguments, id=f"{name}-{number}")


def is_listed(table, name, arguments):
    """Whether a case is in a table of tests, or of some of their cases."""
    listed = table.get(name)
    return listed[1](arguments) if isinstance(listed, tuple) else listed is not None


def test_every_exception_names_a_test():
    names = {name for module in SUITES for name in vars(module)}
    assert {*EXCEPTIONS, *NOT_RUN} <= names


def has_counterpart(kernel):
    """Whether a kernel of scikit-learn, if there is one, is the Gaussian kernel with a variance and noise."""
    try:
        return kernel is None or bool(summands(kernel))
    except TypeError:
        return False


@pytest.mark.parametrize(("module", "name", "arguments"), list(cases()))
def test_as_scikit_learn_tests_its_own(module, name, arguments, monkeypatch):
    for old, new in SUITES[module].items():
        monkeypatch.setattr(module, old, new)
    for old, new in LISTS.items():
        if hasattr(module, old):
            monkeypatch.setattr(module, old, new)
    test = getattr(module, name)
    fixtures = {"global_dtype": np.float32, "global_random_seed": 0}
    wanted = inspect.signature(test).parameters
    arguments = arguments | {n: v for n, v in fixtures.items() if n in wanted}
    if not is_listed(EXCEPTIONS, name, arguments) and has_counterpart(arguments.get("kernel")):
        test(**arguments)
        return
    with pytest.raises((Exception, pytest.fail.Exception)):
        test(**arguments)
