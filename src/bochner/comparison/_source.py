"""Estimators as source code that rebuilds them: constructor calls without default arguments, and their imports."""

from __future__ import annotations

import inspect
from textwrap import indent
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline, make_pipeline

_WIDTH = 88  # columns of printed code, as black and ruff have them


def source(estimator: Any) -> tuple[list[str], str]:
    r"""Return the import lines and the expression of an unfitted estimator.

    Examples
    --------
    >>> from sklearn.linear_model import RidgeCV
    >>> from sklearn.preprocessing import StandardScaler
    >>> imports, expression = source(make_pipeline(StandardScaler(), RidgeCV(alphas=[0.1, 1.0])))
    >>> print(*imports, expression, sep="\n")
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    make_pipeline(StandardScaler(), RidgeCV(alphas=[0.1, 1.0]))
    """
    imports: set[str] = set()
    expression = _expression(estimator, imports)
    return sorted(imports), expression


def _expression(value: Any, imports: set[str]) -> str:
    if isinstance(value, Pipeline) and [name for name, _ in value.steps] == [name for name, _ in _unnamed(value)]:
        imports.add("from sklearn.pipeline import make_pipeline")
        return _call("make_pipeline", [_expression(step, imports) for _, step in value.steps])
    if isinstance(value, BaseEstimator):
        imports.add(f"from {_public_module(type(value))} import {type(value).__name__}")
        return _call(type(value).__name__, _arguments(value, imports))
    if isinstance(value, np.ndarray):
        return _expression(value.tolist(), imports)
    if isinstance(value, list):
        return f"[{', '.join(_expression(item, imports) for item in value)}]"
    if isinstance(value, tuple):
        return f"({''.join(_expression(item, imports) + ', ' for item in value).rstrip()})"
    if isinstance(value, dict):
        return _call("{}", [f"{key!r}: {_expression(item, imports)}" for key, item in value.items()])
    return repr(value.item() if isinstance(value, np.generic) else value)


def _call(name: str, arguments: list[str]) -> str:
    """A call, or a dictionary, in one line, or with one line for each argument where that is too long."""
    start, end = ("{", "}") if name == "{}" else (f"{name}(", ")")
    line = f"{start}{', '.join(arguments)}{end}"
    if len(line) <= _WIDTH and "\n" not in line:
        return line
    return "\n".join([start, *(indent(f"{argument},", "    ") for argument in arguments), end])


def _unnamed(pipeline: Pipeline) -> list[tuple[str, Any]]:
    """The steps with the names that `make_pipeline` gives them."""
    steps: list[tuple[str, Any]] = make_pipeline(*(step for _, step in pipeline.steps)).steps
    return steps


def _arguments(estimator: Any, imports: set[str]) -> list[str]:
    """Arguments that are not the defaults; those that the constructor requires come first, without their names."""
    written, given = [], estimator.get_params(deep=False)
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        if name not in given or _same(given[name], parameter.default):
            continue
        value = _expression(given[name], imports)
        required = parameter.default is inspect.Parameter.empty and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        written.append(value if required else f"{name}={value}")
    return written


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and repr(value) == repr(default))


def _public_module(kind: type) -> str:
    """The module that users import the class from: the path up to its first private part."""
    parts = kind.__module__.split(".")
    private = next((k for k, part in enumerate(parts) if part.startswith("_") and part != "__main__"), len(parts))
    return ".".join(parts[:private]) or kind.__module__
