"""Files of drawn features: a format version, the plan as JSON, and arrays under stable names; no executable code.

The JSON of a plan names public classes by their public module (``"maps.OptimalPositive"``) and holds their parameters,
so files do not depend on the private modules.  Register your own classes with `bochner.extending.register` before you
save or load them.
"""

from __future__ import annotations

import base64
import dataclasses
import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .. import geometries, kernels, maps, projections, radii, rotations
from .._facts import classes
from .._validation import check_count
from .._whole_file import write_whole
from ..maps import Pointwise, coefficients
from ._feature_map import FeatureMap
from ._specification import Approximation

FORMAT = 2
"""Format version that `save` writes; `load` reads this version and all earlier ones."""
_MODULES: dict[str, tuple[Any, Any]] = {
    "kernels": (kernels, kernels.Kernel),
    "rotations": (rotations, rotations.Rotation),
    "geometries": (geometries, geometries.Geometry),
    "radii": (radii, radii.RadialLaw),
    "projections": (projections, projections.Projection),
    "maps": (maps, (maps.Map, maps.Frame)),
    "maps.coefficients": (coefficients, coefficients.Coefficient),
}
_LARGEST_JSON = 1 << 26  # 64 MB: far above any plan, and little enough for json to parse from a damaged file
_NUMBERS = {"float32": "<f4", "float64": "<f8"}
"""Types of the numbers of an array in a plan: the first one that loses nothing."""
_DEEPEST = 64  # far above any map of maps, and far below Python's limit of recursion


def plan_to_json(spec: Approximation) -> str:
    """Return a specification as JSON, with the public names of its classes and their parameters.

    Parameters
    ----------
    spec : Approximation
        A specification or a plan.

    Returns
    -------
    str

    Examples
    --------
    >>> from bochner import Approximation, kernels
    >>> from bochner.approximation.files import plan_from_json, plan_to_json
    >>> spec = Approximation(kernels.Gaussian(2.0), n_projections=16)
    >>> plan_from_json(plan_to_json(spec)) == spec
    True
    """
    fields = {field.name: _encode(getattr(spec, field.name)) for field in dataclasses.fields(spec)}
    return json.dumps({"type": "Approximation", **fields}, allow_nan=False)


def plan_from_json(text: str | bytes) -> Approximation:
    """Rebuild a specification from JSON; anything except plain values of public classes is refused.

    Parameters
    ----------
    text : str or bytes
        Result of `plan_to_json`.

    Returns
    -------
    Approximation
    """
    if len(text) > _LARGEST_JSON:
        raise ValueError(
            f"bochner.load: the description of the plan has {len(text)} characters, more than {_LARGEST_JSON}."
        )
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("bochner.load: the description of the plan is not JSON.") from None
    if not isinstance(value, dict) or value.pop("type", None) != "Approximation":
        raise ValueError("bochner.load: the description of the plan is not that of an Approximation.")
    spec: Approximation = _built(Approximation, "Approximation", value, 0)
    return spec


def save(phi: FeatureMap, path: str | os.PathLike[str]) -> None:
    """Write drawn features to a file; an existing file is replaced once the new one is complete.

    Parameters
    ----------
    phi : FeatureMap
        The drawn features.
    path : str or path
        Where to write.
    """
    state = to_state(phi)
    if "plan" not in state:
        raise TypeError(
            f"FeatureMap.save: {phi.spec.map!r} holds a function, and a file holds no code; keep f in your "
            f"program and save phi.to_arrays()."
        )
    members = {f"arrays/{name}": values for name, values in state["arrays"].items()}
    plan = np.frombuffer(state["plan"].encode(), dtype=np.uint8)
    members |= {"format": np.array(FORMAT), "plan": plan, "d": np.array(state["d"])}
    write_whole("FeatureMap.save", path, lambda file: np.savez(file, **members))


def load(path: str | os.PathLike[str]) -> FeatureMap:
    """Read drawn features from a file that `FeatureMap.save` wrote.

    Nothing in the file is executed and nothing is drawn: the plan is rebuilt from public names, and the arrays are
    checked against it.

    Parameters
    ----------
    path : str or path
        The file to read.

    Returns
    -------
    FeatureMap
        The same features, bit for bit.

    Raises
    ------
    ValueError
        If the file does not have this format, has a later version, or is inconsistent with its own plan.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np, bochner
    >>> phi = bochner.mechanism("orf", n_projections=8).draw(3, rng=0)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "orf.npz"
    >>> phi.save(path)
    >>> X = np.ones((2, 3))
    >>> bool((bochner.load(path).queries(X) == phi.queries(X)).all())
    True
    """
    members = _members(Path(path))
    for name in ("format", "plan", "d"):
        if name not in members:
            raise ValueError(f"bochner.load: {path} lacks {name!r}; expected a file of FeatureMap.save.")
    arrays = {name.removeprefix("arrays/"): a for name, a in members.items() if name.startswith("arrays/")}
    plan = members["plan"]
    scalars = (members["format"], members["d"])
    if plan.dtype != np.uint8 or any(number.shape or number.dtype.kind not in "iu" for number in scalars):
        raise ValueError(f"bochner.load: {path} is damaged: its plan, format or dimension has the wrong type.")
    return from_state(
        {
            "format": int(members["format"]),
            "plan": plan.tobytes().decode("utf-8", "replace"),
            "d": int(members["d"]),
            "arrays": arrays,
        }
    )


def to_state(phi: FeatureMap) -> dict[str, Any]:
    """Return drawn features as plain data, for `save` and for pickles.

    A plan with a user-defined function has no JSON; the state then holds the specification itself.

    Parameters
    ----------
    phi : FeatureMap
        The drawn features.

    Returns
    -------
    dict
    """
    state: dict[str, Any] = {"format": FORMAT, "d": phi.n_features_in, "arrays": phi.to_arrays()}
    if isinstance(phi.spec.map, Pointwise):
        return state | {"spec": phi.spec}
    return state | {"plan": plan_to_json(phi.spec)}


def from_state(state: Mapping[str, Any]) -> FeatureMap:
    """Rebuild drawn features from the result of `to_state`.

    Parameters
    ----------
    state : mapping
        Result of `to_state`.

    Returns
    -------
    FeatureMap
    """
    version = state.get("format")
    if not isinstance(version, int) or version < 1:
        raise ValueError(f"bochner.load: expected a format version, got {version!r}.")
    if version > FORMAT:
        raise ValueError(
            f"bochner.load: this file has format version {version}, and this bochner reads up to {FORMAT}; upgrade bochner."
        )
    spec = state["spec"] if "spec" in state else plan_from_json(state["plan"])
    if not isinstance(spec, Approximation) or not spec.planned:
        raise ValueError("bochner.load: the plan has constants that were never chosen.")
    return FeatureMap.from_arrays(spec, check_count("bochner.load", "d", state["d"]), state["arrays"])


def _encode(value: Any) -> Any:
    """Plain JSON for numbers, strings, tuples and public values."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"a plan must hold finite numbers, got {value}.")
        return value
    if isinstance(value, complex):
        return {"complex": [value.real, value.imag]}
    if isinstance(value, tuple | list):
        return [_encode(part) for part in value]
    if isinstance(value, np.ndarray):
        kind = next(kind for kind, short in _NUMBERS.items() if kind == "float64" or _fits(value, short))
        numbers = np.ascontiguousarray(value, dtype=_NUMBERS[kind])
        return {"array": list(value.shape), kind: base64.b64encode(numbers.tobytes()).decode()}
    name = _public_name(type(value))
    if name is None:
        raise TypeError(
            f"{value!r} cannot be saved: its class is not public in bochner; register it with bochner.extending.register."
        )
    return {"type": name} | {field.name: _encode(getattr(value, field.name)) for field in dataclasses.fields(value)}


def _decode(value: Any, depth: int) -> Any:
    if depth > _DEEPEST:
        raise ValueError(f"bochner.load: the plan is nested more than {_DEEPEST} deep.")
    if isinstance(value, list):
        return tuple(_decode(part, depth + 1) for part in value)
    if not isinstance(value, dict):
        return value
    if set(value) == {"complex"}:
        parts = value["complex"]
        if not (isinstance(parts, list) and len(parts) == 2 and all(isinstance(p, int | float) for p in parts)):
            raise ValueError(f"bochner.load: expected a complex number as two numbers, got {parts!r}.")
        return complex(*parts)
    for kind, short in _NUMBERS.items():
        if set(value) == {"array", kind}:
            return _array(value["array"], value[kind], short)
    name, value = _upgraded(value.pop("type", None), value)
    cls = _public_class(name)
    if cls is None:
        raise ValueError(
            f"bochner.load: the plan names {name!r}, which is not a class of this bochner; if it is your "
            f"own, register it first."
        )
    return _built(cls, str(name), value, depth)


def _upgraded(name: Any, fields: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The name and the parameters that a class has now, for those that version 1 wrote."""
    if name == "maps.Positive" and "antithetic" in fields:
        name = "maps.Hyperbolic" if fields.pop("antithetic") else name
    return name, {key.replace("_centre", "_center"): value for key, value in fields.items()}


def _fits(value: np.ndarray, kind: str) -> bool:
    """Whether an array loses nothing in that type: landmarks of float32 rows have half of the size."""
    with np.errstate(over="ignore"):
        return np.array_equal(value.astype(kind).astype(np.float64), value)


def _array(shape: Any, text: Any, kind: str) -> np.ndarray:
    try:
        numbers = np.frombuffer(base64.b64decode(text, validate=True), dtype=kind)
        return numbers.astype(np.float64, copy=False).reshape(shape)
    except (TypeError, ValueError):
        raise ValueError(f"bochner.load: the plan holds an array of shape {shape!r} that cannot be read.") from None


def _built(cls: type, name: str, fields: dict[str, Any], depth: int) -> Any:
    known = {field.name for field in dataclasses.fields(cls)}
    unknown = sorted(set(fields) - known)
    if unknown:
        raise ValueError(f"bochner.load: {name} has no parameter {unknown[0]!r}; it has {', '.join(sorted(known))}.")
    try:
        return cls(**{key: _decode(part, depth + 1) for key, part in fields.items()})
    except TypeError as error:
        raise ValueError(f"bochner.load: {name} cannot be built from the plan: {error}") from None


def _public_name(cls: type) -> str | None:
    return next((name for name, found in _public_classes().items() if found is cls), None)


def _public_class(name: Any) -> type | None:
    return _public_classes().get(name) if isinstance(name, str) else None


def _public_classes() -> dict[str, type]:
    """All classes that a plan may contain, by public name; registered classes appear under the module of their kind."""
    found = {}
    for module, (exported, kind) in _MODULES.items():
        for cls in classes(exported, kind):
            if dataclasses.is_dataclass(cls):
                found[f"{module}.{cls.__name__}"] = cls
    found.pop("maps.Pointwise", None)  # its parameter is a function
    return found


def _members(path: Path) -> dict[str, np.ndarray]:
    """Arrays of an ``.npz`` file, without unpickling, and with no more bytes than the file itself accounts for."""
    data = path.read_bytes()
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(member.file_size for member in archive.infolist())
            if size > 4 * len(data) + (1 << 20):
                raise ValueError(f"it would unpack to {size} bytes, and files of FeatureMap.save are not compressed")
            return {member.filename.removesuffix(".npy"): _member(archive, member) for member in archive.infolist()}
    except Exception as error:  # a damaged archive can fail in any part of zipfile; all of it is in memory by now
        raise ValueError(f"bochner.load: {path} is not a file of FeatureMap.save, or damaged: {error}.") from None


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array, of the size that its header declares."""
    content = archive.read(member)
    file = io.BytesIO(content)
    version = np.lib.format.read_magic(file)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}[version]
    shape, by_columns, dtype = read(file)
    if dtype.hasobject:
        raise ValueError(f"{member.filename!r} holds Python objects, which are not read")
    if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"{member.filename!r} declares {dtype} of shape {shape}, and holds another number of bytes")
    array = np.frombuffer(content, dtype, offset=file.tell()) if math.prod(shape) else np.empty(0, dtype)
    return array.reshape(shape, order="F" if by_columns else "C").copy()
