"""Inter-pod terms as pods state them, parsed once, and the log of placed pods that state any.

A term of a placed pod speaks of pods to come: required anti-affinity forbids a domain to those it matches, the other kinds draw them near or keep them away.
The log lets a `Signature` follow those effects by what changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.machinery.labels import Selector, from_label_selector
from kubemini.machinery.memo import by_identity

HARD_WEIGHT = 1
"""What a placed pod's required affinity weighs in the score of a pod that it matches (``hardPodAffinityWeight``)."""

NamespaceLabels = Callable[[str], Mapping[str, str]]
"""Returns the labels of a namespace."""

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Term:
    """A parsed affinity term."""

    key: str
    selector: Selector
    namespaces: tuple[str, ...]
    namespace_selector: Selector | None

    def reaches(self, namespace: str, own_namespace: str, labels_of: NamespaceLabels) -> bool:
        """Tell whether the term (of a pod in `own_namespace`) speaks of a namespace's pods."""
        if self.namespaces or self.namespace_selector is not None:
            return namespace in self.namespaces or (self.namespace_selector is not None and self.namespace_selector.matches(labels_of(namespace)))
        return namespace == own_namespace

    def matches(self, pod: Tree, own_namespace: str, labels_of: NamespaceLabels) -> bool:
        """Tell whether a pod is one that the term (of a pod in `own_namespace`) speaks of."""
        meta = pod["metadata"]
        return self.selector.matches(meta.get("labels")) and self.reaches(meta["namespace"], own_namespace, labels_of)


def _term(tree: Tree) -> Term:
    selector = tree.get("namespaceSelector")
    return Term(
        tree["topologyKey"],
        from_label_selector(tree.get("labelSelector")),
        tuple(tree.get("namespaces") or ()),
        from_label_selector(selector) if selector is not None else None,
    )


@dataclass(frozen=True, slots=True)
class Terms:
    """All inter-pod terms of one pod; preferred ones with their weights."""

    affinity: tuple[Term, ...] = ()
    anti: tuple[Term, ...] = ()
    likes: tuple[tuple[int, Term], ...] = ()
    """Preferred affinity with positive, preferred anti-affinity with negative weights."""

    def __bool__(self) -> bool:
        """Tell whether there are any."""
        return bool(self.affinity or self.anti or self.likes)

    def selectors(self) -> list[Selector]:
        """Return the selectors of all terms."""
        return [term.selector for term in (*self.affinity, *self.anti, *(term for _, term in self.likes))]


_NONE = Terms()


@by_identity()
def _terms(affinity: Tree) -> Terms:
    near, far = affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {}
    likes = [(each["weight"], _term(each["podAffinityTerm"])) for each in near.get(_PREFERRED) or ()]
    likes += [(-each["weight"], _term(each["podAffinityTerm"])) for each in far.get(_PREFERRED) or ()]
    return Terms(tuple(map(_term, near.get(_REQUIRED) or ())), tuple(map(_term, far.get(_REQUIRED) or ())), tuple(likes))


def terms_of(spec: Tree) -> Terms:
    """Return a pod's inter-pod terms."""
    affinity = spec.get("affinity")
    if not affinity or not (affinity.get("podAffinity") or affinity.get("podAntiAffinity")):
        return _NONE
    return _terms(affinity)


@dataclass(frozen=True, slots=True)
class Stated:
    """A placed pod that states terms."""

    uid: str
    namespace: str
    node: str
    terms: Terms


class TermLog:
    """The placed pods with terms, and every coming and going of one."""

    def __init__(self) -> None:
        self.stated: dict[str, Stated] = {}
        self.log: list[tuple[int, Stated]] = []
        self.base = 0
        self.keys: tuple[str, ...] = ()
        """Every label key that a term has looked at so far."""

    @property
    def end(self) -> int:
        """The position after the newest entry."""
        return self.base + len(self.log)

    def add(self, pod: Tree, node: str, terms: Terms) -> None:
        """Note a pod that was placed."""
        meta = pod["metadata"]
        entry = self.stated[meta["uid"]] = Stated(meta["uid"], meta["namespace"], node, terms)
        self.log.append((1, entry))
        fresh = dict.fromkeys(each.key for selector in terms.selectors() for each in selector.requirements if each.key not in self.keys)
        if fresh:
            self.keys = (*self.keys, *fresh)

    def remove(self, uid: str) -> None:
        """Note that a pod is no longer placed."""
        entry = self.stated.pop(uid, None)
        if entry is not None:
            self.log.append((-1, entry))
            if len(self.log) > 4 * len(self.stated) + 1024:
                self.reset()

    def reset(self) -> None:
        """Let everybody look at all stated terms anew: domains of nodes or labels of namespaces have changed."""
        self.base += len(self.log) + 1
        self.log.clear()
