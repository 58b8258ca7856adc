"""The base of every model: strict, frozen, camelCase outside and snake_case inside.

A model is a typed view that was parsed once, or an object that a user builds; the canonical form of an object remains the
JSON tree. pydantic compiles a model on first use (``defer_build``), so importing a module of models costs little.
"""

from __future__ import annotations

from typing import ClassVar, Self

from pydantic import BaseModel, ConfigDict

from kubemini.api.meta.markers import Rule
from kubemini.api.trees import Tree

_ACRONYMS = {"dns": "DNS"}
"""Words that upstream writes in capitals where they do not lead a name."""


def camel(name: str) -> str:
    """Return the JSON name of an attribute.

    >>> camel("enable_dns_hostnames"), camel("hpa_pod_selector")
    ('enableDNSHostnames', 'hpaPodSelector')
    """
    head, *rest = name.split("_")
    return head + "".join(_ACRONYMS.get(word) or word[:1].upper() + word[1:] for word in rest)


class Model(BaseModel):
    """One object type. Attributes can be given by either name; unknown fields and wrong types are refused."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=camel,
        populate_by_name=True,
        strict=True,
        extra="forbid",
        defer_build=True,
        protected_namespaces=(),
    )

    cel_rules: ClassVar[tuple[Rule, ...]] = ()
    """CEL rules of the whole object, in the order in which violations are reported."""
    atomic: ClassVar[bool] = False
    """Whether server-side apply owns the object as a whole."""

    @classmethod
    def from_tree(cls, tree: Tree) -> Self:
        """Parse a JSON tree, passing over fields that this version does not know. Raise pydantic's ``ValidationError``."""
        return cls.model_validate(tree, extra="ignore")

    def to_tree(self) -> Tree:
        """Return the JSON tree of what was set: no defaults, no nulls (built-in subtrees stay as they were given)."""
        return self.model_dump(by_alias=True, exclude_unset=True, exclude_none=True)
