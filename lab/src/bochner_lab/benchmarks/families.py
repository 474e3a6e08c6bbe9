"""Every class of attention of the installed ``transformers``, converted in a tiny model with random weights.

Each class that calls the attention interface is looked for in the models of its own file, which are built from their default
configurations with small sizes.  A model is converted by codes that keep all keys, which is exact attention, and is compared
with what it computed before; then it is saved, loaded, and generates.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from ._bench import Result, at_least, measured, not_measured
from ._small_models import WAYS, batches, built, output

GOAL = 300
"""Classes that are to agree with exact attention."""
TOLERANCE = 1e-3
"""Largest difference of outputs, relative to the largest output: float32 in another order of operations."""
_TRIED = 10
"""Models of a family that are tried until all of its classes are found."""
_ORDER = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "Model", "ForMaskedLM", "")


@dataclass(frozen=True)
class Outcome:
    """What was found of a class of attention; ``reason`` says where it ended, in words, and is empty if all went well."""

    family: str
    attention: str
    model: str = ""
    converts: bool = False
    agrees: bool = False
    saves: bool = False
    generates: bool | None = None
    reason: str = ""

    def record(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)


def run() -> Iterator[Result]:
    """A line for each class, and their number."""
    try:
        import transformers
    except ImportError:
        yield not_measured("families", 'needs transformers: pip install "torch>=2.4" "transformers>=5"')
        return
    transformers.logging.set_verbosity_error()
    outcomes = []
    for outcome in sweep():
        outcomes.append(outcome)
        details = outcome.reason or f"in {outcome.model}"
        line = measured(f"{outcome.family}: {outcome.attention}", float(outcome.agrees), "exact", details)
        yield line.with_numbers(**outcome.record())
    count = sum(outcome.agrees for outcome in outcomes)
    yield at_least("classes that agree with exact attention", count, GOAL, "classes", f"of {len(outcomes)}")


def families() -> list[str]:
    """Names of the families of models."""
    import transformers.models

    return sorted(found.name for found in pkgutil.iter_modules(transformers.models.__path__))


def sweep(names: list[str] | None = None) -> Iterator[Outcome]:
    """All classes of attention of these families, or of all, in order."""
    for name in families() if names is None else names:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield from _family(name)


def _family(name: str) -> Iterator[Outcome]:
    try:
        module = importlib.import_module(f"transformers.models.{name}.modeling_{name}")
    except Exception:  # families without a model of their own, or with requirements that are not installed
        return
    waiting = {kind.__name__ for kind in _classes(module) if _calls_interface(kind)}
    found: dict[str, Outcome] = {}
    crosses = (False, True) if any("Cross" in attention for attention in waiting) else (False,)
    for kind, cross, way in product(sorted(_models(module), key=_rank)[:_TRIED], crosses, WAYS):
        left = {attention for attention in waiting if attention not in found or not found[attention].agrees}
        if not left:
            break
        for outcome in _tried(name, kind, way, left, cross):
            best = found.get(outcome.attention)
            if best is None or _progress(outcome) > _progress(best):
                found[outcome.attention] = outcome
    for attention in sorted(waiting):
        yield found.get(attention, Outcome(name, attention, reason="no small model of this class was built"))


def _progress(outcome: Outcome) -> int:
    return sum(map(bool, (outcome.converts, outcome.agrees, outcome.saves, outcome.generates)))


def _classes(module: Any) -> list[Any]:
    return [kind for kind in vars(module).values() if inspect.isclass(kind) and kind.__module__ == module.__name__]


def _calls_interface(kind: Any) -> bool:
    try:
        return "ALL_ATTENTION_FUNCTIONS" in inspect.getsource(kind.forward)
    except (OSError, TypeError, AttributeError):
        return False


def _models(module: Any) -> list[Any]:
    from transformers import PreTrainedModel

    return [
        kind
        for kind in _classes(module)
        if issubclass(kind, PreTrainedModel) and getattr(kind, "config_class", None) is not None
        and not kind.__name__.endswith("PreTrainedModel")
    ]  # fmt: skip


def _rank(kind: Any) -> tuple[int, str]:
    return next(i for i, end in enumerate(_ORDER) if kind.__name__.endswith(end)), kind.__name__


def _tried(family: str, kind: Any, way: Any, waiting: set[str], cross: bool) -> list[Outcome]:
    """The outcomes of all classes of attention in one model that is made small in one way."""
    from bochner.nn import CodedPlan, replace_attention

    try:
        model = built(kind, way, cross)
        batch, expected = _first_that_runs(model, cross)
    except Exception as error:
        return [Outcome(family, name, kind.__name__, reason=f"not built here: {_words(error)}") for name in waiting]
    there = {type(module).__name__ for module in model.modules()} & waiting
    called: set[str] = set()
    try:
        plans = CodedPlan.uncalibrated(model, kept=4096, window=4, exact_below=0)
        named = dict(model.named_modules())
        for name in plans:
            named[name].register_forward_pre_hook(lambda module, *_: called.add(type(module).__name__))
        replace_attention(model, plans or "dense", 8)  # without plans nothing converts, and the error says why
    except Exception as error:
        return [Outcome(family, name, kind.__name__, reason=_words(error)) for name in there]
    converted = {type(named[name]).__name__ for name in plans}
    result: dict[str, dict[str, Any]] = {name: {"converts": name in converted} for name in there}
    reasons = {name: "" if name in converted else "sizes are not found, or it slides" for name in there}
    generated: bool | None = None
    saves = agrees = False
    reason = ""
    try:
        found = output(model, batch)
        agrees = bool((found - expected).abs().max() <= TOLERANCE * expected.abs().max())
        reason = "" if agrees else f"differs by {float((found - expected).abs().max() / expected.abs().max()):.1g}"
        saves = agrees and _comes_back(model, batch, found)
        reason = reason or ("" if saves else "another result after loading")
        if saves and model.can_generate() and "input_ids" in batch and not cross:
            generated = _generates(built(kind, way, False), model, batch)
            reason = reason or ("" if generated else "another text")
    except Exception as error:
        reason = _words(error)
    for name in there & converted:
        if name in called:
            result[name] |= {"agrees": agrees, "saves": saves, "generates": generated}
            reasons[name] = reason
        else:
            reasons[name] = reason or "not called by a small input of this model"
    return [Outcome(family, name, kind.__name__, **result[name], reason=reasons[name]) for name in there]


def _first_that_runs(model: Any, cross: bool) -> tuple[dict[str, Any], Any]:
    """The first input that the model takes, and what it computes; the error of the first input where it takes none."""
    failed: Exception | None = None
    for batch in batches(model, cross):
        try:
            found = output(model, batch)
        except Exception as error:
            failed = failed or error
            continue
        if found.numel() and bool(found.isfinite().all()) and bool(found.any()):
            return batch, found
        failed = failed or ValueError("its output is empty, zero or not finite")
    raise failed or ValueError("takes inputs of other kinds")


def _comes_back(model: Any, batch: dict[str, Any], expected: Any) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        again = type(model).from_pretrained(folder).eval()
    if hasattr(again, "set_default_language"):
        again.set_default_language(model.config.default_language)
    return bool((output(again, batch) - expected).abs().max() <= TOLERANCE * expected.abs().max())


def _generates(before: Any, model: Any, batch: dict[str, Any]) -> bool:
    """Whether the converted model writes what the model wrote before, greedily."""
    options = {"max_new_tokens": 4, "do_sample": False, "eos_token_id": None, "pad_token_id": 0, "bos_token_id": 1}
    tokens = batch["input_ids"][:1]
    return bool((before.generate(tokens, **options) == model.generate(tokens, **options)).all())


def _words(error: Exception) -> str:
    first = str(error).strip().splitlines()
    return f"{type(error).__name__}: {first[0][:160] if first else ''}"
