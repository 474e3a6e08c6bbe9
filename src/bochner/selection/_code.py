"""Estimators as Python code to paste."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from .._table import label
from ..approximation import Approximation
from ._task import Task


class Source(NamedTuple):
    """Where the rows come from: lines of code that define X and y, and imports for them; none if they are at hand."""

    imports: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


class Snippet(NamedTuple):
    """An estimator in code: imports, lines before it, the steps of a pipeline, and whether it standardises by itself."""

    imports: tuple[str, ...]
    lines: tuple[str, ...]
    steps: tuple[str, ...]
    standardizes: bool = False


def script(snippet: Snippet, task: Task, source: Source) -> str:
    """Return code that builds an estimator and fits it to X and y, with columns standardised as in the task."""
    imports, steps = [*source.imports, *snippet.imports], list(snippet.steps)
    if task.scaled and not snippet.standardizes:
        scaling = _scaling(task)
        imports += scaling.imports
        steps = [*scaling.steps, *steps]
    if len(steps) > 1:
        imports.append("from sklearn.pipeline import make_pipeline")
    model = steps[0] if len(steps) == 1 else "make_pipeline(\n" + "".join(f"    {step},\n" for step in steps) + ")"
    body = [*source.lines, *snippet.lines, f"model = {model}", "model.fit(X, y)"]
    return "\n".join([*sorted(set(imports)), "", *body]) + "\n"


def _scaling(task: Task) -> Snippet:
    """Standardisation of all columns, or of the leading ones, before those that encode categories."""
    imports = ["from sklearn.preprocessing import StandardScaler"]
    if task.scaled == task.X.shape[1]:
        return Snippet(tuple(imports), (), ("StandardScaler()",))
    imports.append("from sklearn.compose import make_column_transformer")
    step = f"make_column_transformer((StandardScaler(), slice({task.scaled})), remainder='passthrough')"
    return Snippet(tuple(imports), (), (step,))


def mechanism_snippet(spec: Approximation, alpha: float, task: Task) -> Snippet:
    """Code of a ridge on the features of a specification."""
    estimator = "KernelClassifier" if task.kind == "classification" else "KernelRidge"
    parts = [spec.kernel, spec.map, *([spec.projection] if spec.map.uses_rows else [])]
    imports = ["from bochner import Approximation", f"from bochner.learn import {estimator}"]
    for module, names in _names(parts).items():
        imports.append(f"from {module} import {', '.join(sorted(names))}")
    written = [f"    {label(part)}," for part in parts]
    lines = ["spec = Approximation(", *written, f"    n_projections={spec.n_projections},", ")"]
    itself = task.scaled == task.X.shape[1]
    step = f"{estimator}.from_spec(spec, alpha={alpha:.6g}, standardize={itself}, random_state=0)"
    return Snippet(tuple(imports), tuple(lines), (step,), itself)


def _names(parts: list[Any]) -> dict[str, set[str]]:
    """Names of the classes in parts of a specification, by the public module to import them from."""
    found: dict[str, set[str]] = {}
    for part in parts:
        for value in _inside(part):
            module = ".".join(type(value).__module__.split(".")[:2])
            found.setdefault(module, set()).add(type(value).__name__)
    return found


def _inside(value: Any) -> Iterator[Any]:
    """The value, and the values in its fields that `label` writes since they are not the default."""
    yield value
    for field in dataclasses.fields(value):
        given = getattr(value, field.name)
        if dataclasses.is_dataclass(given) and (field.default is dataclasses.MISSING or given != field.default):
            yield from _inside(given)
