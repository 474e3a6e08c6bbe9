"""Adapters to other packages: constructors and calls with hostile arguments, and interruptions.

The adapters of GPyTorch and BoTorch are explored where these packages are installed.
"""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest
import torch

from bochner import Approximation, adapters, kernels, maps, projections
from fuzz.exploring import explore
from fuzz.targets import Good, constant
from fuzz.test_fuzz_nn import TensorTarget, heads, tokens

D = 4
"""Width of a head, and columns of data."""
SPEC = Approximation(kernels.Gaussian(), maps.Trigonometric(), n_projections=5)
GOOD: Good = {
    "dim_heads": constant(D),
    "nb_features": constant(6),
    "causal": constant(True),
    "q": heads,
    "k": lambda: heads() + 0.1,
    "v": lambda: heads() - 0.1,
    "num_dims": constant(D),
    "spec": constant(SPEC),
    "generator": lambda: torch.Generator().manual_seed(0),
    "x1": lambda: tokens(5, D),
    "x2": lambda: tokens(3, D, seed=1),
    "map": constant(maps.Trigonometric()),
    "projection": constant(projections.Orthogonal()),
    "num_outputs": constant(6),
}


def performer(**arguments: Any) -> Any:
    torch.manual_seed(0)
    return adapters.PerformerAttention(**arguments)(heads(), heads(), heads())


def attention() -> Any:
    torch.manual_seed(0)
    made = adapters.PerformerAttention(D, 6)
    assert made.features.positive  # kept from the first call on
    return made


def kernel(num_dims: Any = D, **arguments: Any) -> Any:
    torch.manual_seed(0)
    return adapters.FeatureKernel(num_dims, **arguments)(tokens(5, D)).to_dense()


def matrix(subject: Any, x1: Any, x2: Any) -> Any:
    return subject.forward(x1, x2).to_dense()


def paths(num_outputs: Any = 6, **arguments: Any) -> Any:
    from gpytorch.kernels import RBFKernel

    torch.manual_seed(0)
    return adapters.path_features(**arguments)(RBFKernel(), D, num_outputs)(tokens(5, D)).detach()


def target(call: Callable[..., Any], *names: str, required: int = 0, subject: Any = None) -> TensorTarget:
    good = {name: GOOD[name] for name in names}
    return TensorTarget(call.__name__, call, good, required=names[:required], subject=subject)


TARGETS = [
    target(performer, "dim_heads", "nb_features", "causal", required=2),
    target(adapters.PerformerAttention.forward, "q", "k", "v", required=3, subject=attention),
]
if find_spec("gpytorch") is not None:
    TARGETS += [
        target(kernel, "num_dims", "spec", "generator"),
        target(matrix, "x1", "x2", required=2, subject=lambda: adapters.FeatureKernel(D, SPEC)),
    ]
if find_spec("botorch") is not None:
    TARGETS.append(target(paths, "map", "projection", "generator", "num_outputs"))


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_hostile_arguments(target):
    explore(target.name, target.spoils(), target.check, share=4)


@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_good_arguments_are_accepted(target):
    target.ask({})


def test_an_interruption_changes_no_state():
    """Ctrl-C at many lines of a call whose features are made for the first time."""
    module, inputs = adapters.PerformerAttention(D, 6), (heads(), heads(), heads())
    expected = copy.deepcopy(module)(*inputs)
    hits = 0
    for at in range(1, 2000, 97):
        trial = copy.deepcopy(module)
        hits += _interrupted(lambda trial=trial: trial(*inputs), at)
        assert torch.equal(trial.projection_matrix, module.projection_matrix)
        torch.testing.assert_close(trial(*inputs), expected, rtol=0, atol=0)
        pickle.dumps(trial)
    assert hits


def _interrupted(call: Callable[[], Any], at: int) -> bool:
    """Whether a call was interrupted at the line of the library with this number."""
    lines = 0

    def trace(frame: Any, event: str, argument: Any) -> Any:
        nonlocal lines
        if frame.f_globals.get("__name__", "").partition(".")[0] != "bochner":
            return None
        lines += event == "line"
        if lines == at:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
