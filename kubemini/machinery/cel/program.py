"""Programs: an expression compiled once, evaluated often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kubemini.machinery.cel.checking import Checked, check
from kubemini.machinery.cel.compiling import QUICK_FAILURES, Function, compile_function
from kubemini.machinery.cel.errors import CelEvaluationError
from kubemini.machinery.cel.parsing import parse
from kubemini.machinery.cel.types import DYN, Convert, Declared, Type, optional_of
from kubemini.machinery.cel.values import some

if TYPE_CHECKING:
    from kubemini.machinery.cel.costs import Estimate


@dataclass(frozen=True, eq=False)
class Environment:
    """What an expression may name: variables and their types. Programs are cached per environment, by text."""

    variables: Mapping[str, Type]
    declared: Mapping[str, Declared] = field(default_factory=dict)
    """Variables whose values are raw JSON of a schema."""
    programs: dict[str, Program] = field(default_factory=dict, repr=False)
    patches: bool = False
    """Whether an expression may build what patches are made of."""

    @classmethod
    def dynamic(cls, *names: str) -> Environment:
        """Return an environment of variables about which nothing is known before evaluation."""
        return cls(dict.fromkeys(names, DYN))

    @classmethod
    def of_schema(cls, declared: Declared, *, optional_old: bool = False) -> Environment:
        """Return the environment of a CRD's rule: ``self`` and ``oldSelf`` (an optional one where `optional_old`)."""
        old = optional_of(declared.type) if optional_old else declared.type
        return cls({"self": declared.type, "oldSelf": old}, {"self": declared, "oldSelf": declared})


class Program:
    """A compiled expression. `Program.compile` raises `CelCompileError`, `evaluate` raises `CelEvaluationError`."""

    __slots__ = ("_careful", "_conversions", "_environment", "_parameters", "_quick", "checked")

    def __init__(self, checked: Checked, environment: Environment) -> None:
        self.checked = checked
        self._environment = environment
        self._parameters = tuple(sorted(checked.references))
        self._conversions = _conversions(environment, self._parameters)
        self._quick: Function | None = None
        self._careful: Function | None = None

    @classmethod
    def compile(cls, text: str, environment: Environment | None = None) -> Program:
        """Return the program of an expression; the same one for the same text and environment.

        >>> Program.compile("[1, 2, 3].filter(x, x > 1).map(x, x * 2)").evaluate({})
        [4, 6]
        """
        environment = environment or _NOTHING
        found = environment.programs.get(text)
        if found is None:
            found = cls(check(text, parse(text), environment.variables, patches=environment.patches), environment)
            environment.programs[text] = found
        return found

    @property
    def text(self) -> str:
        """The expression."""
        return self.checked.text

    @property
    def result(self) -> Type:
        """The type of what it evaluates to."""
        return self.checked.result

    @property
    def references(self) -> frozenset[str]:
        """The variables that it reads."""
        return frozenset(self.checked.references)

    def cost(self) -> Estimate:
        """Return the range of what an evaluation may cost, in CEL's units."""
        # Imported here: only whoever judges a definition wants to know.
        from kubemini.machinery.cel.costs import estimate

        return estimate(self.checked, self._environment.declared)

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Return the value. Variables that the expression reads must be there. O(size of what it visits), nothing is copied."""
        try:
            args = [variables[name] for name in self._parameters]
        except KeyError as error:
            raise CelEvaluationError(f"no such attribute(s): {error.args[0]}") from None
        return self.call(*args)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The variables that `call` takes, in order."""
        return self._parameters

    def call(self, *args: Any) -> Any:
        """Evaluate with the values of `parameters`, in order."""
        if self._conversions is not None:
            args = tuple(convert(arg) for convert, arg in zip(self._conversions, args, strict=True))
        quick = self._quick
        if quick is None:
            quick = self._quick = compile_function(self.checked, self._parameters, careful=False)
        try:
            return quick(*args)
        except QUICK_FAILURES:
            return self._decide(args)

    def _decide(self, args: tuple[Any, ...]) -> Any:
        if self._careful is None:
            self._careful = compile_function(self.checked, self._parameters, careful=True)
        try:
            return self._careful(*args)
        except CelEvaluationError:
            raise
        except QUICK_FAILURES as error:
            # A null where the schema promises a value, or a nesting deeper than Python's stack.
            raise CelEvaluationError("no such overload") from error


def _conversions(environment: Environment, names: tuple[str, ...]) -> tuple[Convert, ...] | None:
    """Return what makes values of the raw JSON of variables; None where raw JSON is the value of all of them."""
    found = [_conversion(environment, name) for name in names]
    return tuple(each or _unchanged for each in found) if any(found) else None


def _conversion(environment: Environment, name: str) -> Convert | None:
    known = environment.declared.get(name)
    if known is None or known.convert is None:
        return None
    convert = known.convert
    if environment.variables[name].kind == "opaque":
        return lambda arg: some(convert(arg.value)) if arg.present else arg
    return lambda arg: None if arg is None else convert(arg)


def _unchanged(arg: Any) -> Any:
    return arg


_NOTHING = Environment({})
