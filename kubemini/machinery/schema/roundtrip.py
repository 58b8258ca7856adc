"""How a webhook written in Go leaves a built-in type that is embedded in a custom resource: pod templates, Job templates, claims.

Such a webhook decodes the object into its Go type, changes it and encodes it again; the difference goes back as a JSON patch. So the fields that Go always
serialises appear (``metadata: {}``, ``resources: {}``) and texts become canonical (``1000m`` is ``1``), while nothing is defaulted as the
built-in kind itself would be. Fields that Go would leave out stay: controller-runtime drops the removals of such a patch.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.machinery.memo import IdentityMemo
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.machinery.schema.mismatch import Mismatch
from kubemini.machinery.schema.nodes import Compiler

Form = Callable[[Tree], Tree]


@lru_cache(maxsize=32)
def go_form(name: str, version: str = DEFAULT_VERSION) -> Form:
    """Return a function that gives a tree of a type (``batch/v1.JobTemplateSpec``) as Go encodes it: what is empty or zero without meaning is left out.

    The same object where nothing changes. For comparisons: two trees that a Go controller takes for equal have equal forms. A tree that
    Go could not decode is returned as it is.
    """
    node = _compiler(version).object(name)
    memo: IdentityMemo[Tree] = IdentityMemo(2048)

    def form(tree: Tree) -> Tree:
        found = memo.get(tree)
        if found is None:
            try:
                found = memo.put(tree, node.value(tree))
            except Mismatch:
                found = tree
        return found

    return form


@lru_cache(maxsize=32)
def go_written(name: str, version: str = DEFAULT_VERSION) -> Form:
    """Return a function that gives a tree of a type as a Go webhook hands it back: its Go form over what was there. The same object where nothing changes."""
    form = go_form(name, version)
    memo: IdentityMemo[Tree] = IdentityMemo(2048)

    def written(tree: Tree) -> Tree:
        found = memo.get(tree)
        if found is None:
            found = memo.put(tree, _over(tree, form(tree)))
            memo.put(found, found)
        return found

    return written


@lru_cache(maxsize=8)
def _compiler(version: str) -> Compiler:
    return Compiler(builtin_schemas(version), defaulting=False)


def _over(before: Any, after: Any) -> Any:
    """Return `after` with the keys put back that only `before` has. Nulls are what the API server drops again, wherever they are added; an empty list stays."""
    if before is after or after is None:
        return before
    if isinstance(before, dict) and isinstance(after, dict):
        over = {key: _over(value, after[key]) if key in after else value for key, value in before.items()}
        over.update((key, _without_nulls(value)) for key, value in after.items() if key not in before and value is not None)
        return before if len(over) == len(before) and all(over[key] is value for key, value in before.items()) else over
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        listed = [_over(one, other) for one, other in zip(before, after, strict=True)]
        return before if all(one is other for one, other in zip(listed, before, strict=True)) else listed
    return after


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value
