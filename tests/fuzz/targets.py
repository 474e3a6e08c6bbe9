"""What is called: every public callable, with a good value for each of its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fuzz.engine import fingerprint, same_numbers, violation
from fuzz.values import HOSTILE, MAKES, NUMBERS, Value, rows

Good = dict[str, Callable[[], Any]]

ROWS = ("X", "Y")
"""Names of parameters that are rows of numbers wherever they occur."""


@dataclass(frozen=True)
class Target:
    """A callable, the parameters to spoil, and what its answers may hold."""

    name: str
    call: Callable[..., Any]
    good: Good
    infinite: bool = False
    """Whether infinity is an answer: errors and their logarithms."""
    subject: Callable[[], Any] | None = None
    """Makes the object that ``call`` takes first, and that a refusal must leave as it was."""
    changes: tuple[str, ...] = ()
    """Arguments that are there to be changed."""
    required: tuple[str, ...] = ()
    """Parameters that every call gives; the others are given when they are spoiled."""

    def __str__(self) -> str:
        return self.name

    def arguments(self, spoiled: dict[str, Value]) -> dict[str, Any]:
        """New arguments: good ones for what must be given, hostile ones for what is spoiled."""
        given = {name: self.good[name]() for name in self.required if name not in spoiled}
        return given | {name: value.make() for name, value in spoiled.items()}

    def check(self, spoiled: dict[str, Value]) -> None:
        """Raise an AssertionError that names the call, if it does what it may not."""
        arguments, subject = self.arguments(spoiled), [self.subject()] if self.subject else []
        before = {name: fingerprint(value) for name, value in arguments.items()}
        state = [fingerprint(vars(thing)) for thing in subject]
        answers: list[Any] = []
        found = violation(
            lambda: answers.append(self.call(*subject, **arguments)) or answers[0],
            finite=all(value.finite for value in spoiled.values()),
            bounded=not self.infinite and all(value.bounded for value in spoiled.values()),
        )
        call = f"{self.name}({', '.join(f'{name}={value!r}' for name, value in spoiled.items())})"
        assert found is None, f"{call} {found}"
        kept = {name: value for name, value in arguments.items() if name not in self.changes}
        changed = [name for name, value in kept.items() if before[name] not in (None, fingerprint(value))]
        assert not changed, f"{call} changed its argument {changed[0]}"
        if not answers:
            now = [fingerprint(vars(thing)) for thing in subject]
            assert now == state, f"{call} was refused and left the object half changed"
        accepted = [name for name, value in spoiled.items() if value.refused and name in ROWS and answers]
        assert not accepted, f"{call} was accepted"

    def ask(self, spoiled: dict[str, Value]) -> Any:
        """The answer to good arguments but for those that are spoiled."""
        return self.call(*([self.subject()] if self.subject else []), **self.arguments(spoiled))

    def check_make(self, name: str, value: Value) -> None:
        """Raise if the answer to the same numbers in another make is another one."""
        assert value.plain is not None
        try:
            answer = self.ask({name: value})
        except (TypeError, ValueError):
            return  # a clear refusal, which `check` has judged
        expected = self.ask({name: Value("plain", value.plain)})
        if isinstance(expected, np.ndarray):
            assert same_numbers(answer, expected), (
                f"{self.name}({name}={value!r}) is not the answer to the same numbers"
            )

    def spoils(self) -> st.SearchStrategy[dict[str, Value]]:
        """One parameter spoiled, seldom none or two."""
        names = sorted(set(self.good) - {"owner"})  # the name in messages
        if not names:
            return st.just({})
        some = st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)
        return some.flatmap(lambda chosen: st.fixed_dictionaries({name: self._value(name) for name in chosen}))

    def _value(self, name: str) -> st.SearchStrategy[Value]:
        return NUMBERS | HOSTILE if isinstance(self.good[name](), int | float) else HOSTILE

    def makes(self) -> Iterator[tuple[str, Value]]:
        """Parameters that take rows, with every make of them."""
        for name, good in self.good.items():
            if isinstance(good(), np.ndarray) and good().shape == rows().shape:
                yield from ((name, make) for make in MAKES if make.plain is not None)


def target_of(name: str, call: Callable[..., Any], good: Good, **options: Any) -> Target:
    """The target of a callable: its parameters that ``good`` knows, of which those without a default are required."""
    parameters = inspect.signature(call).parameters.values()
    given = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    required = tuple(p.name for p in given if p.default is p.empty)
    unknown = [p for p in required if p not in good]
    assert not unknown, f"{name}: no good value for {unknown}; add one to the table of its test file"
    return Target(name, call, {p.name: good.get(p.name, lambda: None) for p in given}, required=required, **options)


def public(module: ModuleType, *, leave_out: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """The public callables of a module, but for abstract classes, exceptions and what is left out."""
    for name in module.__all__:
        thing = getattr(module, name)
        wrong = isinstance(thing, type) and (inspect.isabstract(thing) or issubclass(thing, BaseException))
        if callable(thing) and not wrong and not inspect.ismodule(thing) and name not in leave_out:
            yield name, thing


def constant(value: Any) -> Callable[[], Any]:
    """A factory of one value, for values that no call can change."""
    return lambda: value
