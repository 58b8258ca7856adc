"""`StructuralCodec`: decoding and validation of custom resources by the structural schema of their CRD, and of the kinds we own.

The schema is compiled to nodes on demand; whole passes are skipped where a subtree is known by identity (`kubemini.machinery.schema.structure`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial

import orjson

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError
from kubemini.machinery.schema.cleaning import Uncoercible, clean_root, unknown_fields
from kubemini.machinery.schema.contract import Decoded, Undecodable
from kubemini.machinery.schema.keywords import NO_PATH, ROOT
from kubemini.machinery.schema.mismatch import Mismatch
from kubemini.machinery.schema.structure import NOTHING, Structure
from kubemini.machinery.schema.validating import Findings, validate

Evaluate = Callable[..., None]

MAX_PROBLEMS = 100
"""How many unknown fields of one object are told, as upstream."""
_BLOCKING = frozenset({"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"})
_UNCHECKED = FieldError(
    "FieldValueInvalid",
    NO_PATH,
    "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
)


class StructuralCodec:
    """The codec of one custom kind in one version (see `kubemini.machinery.schema.contract.Codec`).

    `schema` is the structural schema of the whole object, as in ``spec.versions[].schema.openAPIV3Schema``; it is never copied and must not be
    mutated. `fixed`: it never changes, so that whatever is stored went through it. `definitions` says what ``$ref`` means (``{"io.k8s.api.core.v1.PodSpec": schema}``), also where a definition refers to itself.
    """

    def __init__(
        self, schema: Tree, *, group: str, version: str, kind: str, definitions: Mapping[str, Tree] | None = None, fixed: bool = False
    ) -> None:
        self.schema = schema
        self.group = group
        self.version = version
        self.kind = kind
        self.structure = Structure(schema, definitions)
        self._fixed = fixed

    @cached_property
    def _evaluate(self) -> Evaluate | None:
        """The pass over the CEL rules, None without rules. CEL is imported only where there are some."""
        root = self.structure.root
        if not root.has_rules:
            return None
        from kubemini.machinery.schema.ruling import evaluate, ruled

        rules = ruled(root)
        return None if rules is None else partial(evaluate, rules)

    def decode(self, tree: Tree, *, validation: str = "Warn", duplicates: Sequence[str] = (), stored: Tree | None = None) -> Decoded:
        """Return the object pruned and defaulted; the same tree where it is so already. Raise `Undecodable`."""
        dropped: list[str] = []
        try:
            new = clean_root(self.structure.root, tree, dropped, stored if self._fixed else None)
        except (Mismatch, Uncoercible) as problem:
            raise Undecodable.of(self.kind, self.version, problem.text()) from None
        if (not dropped and not duplicates) or validation == "Ignore":
            return Decoded(new)
        problems = [f"unknown field {orjson.dumps(path).decode()}" for path in unknown_fields(self.structure.root, tree)] if dropped else []
        problems = list(dict.fromkeys([*duplicates, *problems]))[:MAX_PROBLEMS]
        if validation == "Strict" and problems:
            why = f"strict decoding error: {', '.join(problems)}"
            raise Undecodable(why, why)
        return Decoded(new, problems)

    def validate(self, new: Tree, old: Tree | None = None) -> list[FieldError]:
        """Return broken schema and CEL rules of a decoded object; with `old`, of an update from it."""
        root = self.structure.root
        found = Findings()
        before = NOTHING if old is None else old
        validate(root, new, ROOT, found, before)
        if found.lists and old is not None and self._lists_were_broken(old):
            found.lists.clear()
        errors = found.all()
        evaluate = self._evaluate
        if evaluate is None:
            return errors
        if errors and any(each.reason in _BLOCKING for each in errors):
            return [*errors, _UNCHECKED]
        evaluate(new, ROOT, errors, before, None if old is None else (new, old))
        return errors

    def _lists_were_broken(self, old: Tree) -> bool:
        """Tell whether the old object had repeated list keys already, in which case the new one may have some too."""
        found = Findings()
        validate(self.structure.root, old, ROOT, found)
        return bool(found.lists)

    def openapi(self) -> Tree:
        """Return the structural schema."""
        return self.schema
