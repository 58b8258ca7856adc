"""Topology assignments: from a plain list of domains to the compact form of v1beta2, and back.

The form is no contract upstream (readers must decode, never compare it), but a reader of `kubectl get -o yaml` sees it, so it is the same
as upstream's: runs of hosts whose names share a prefix are one slice each, unless a single slice for all is shorter as JSON.
Mirrors kueue's ``pkg/util/tas``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

import orjson

from kubemini.api.trees import Tree
from kubemini.api.wellknown.kubernetes import HOSTNAME

MAX_DOMAINS = 100_000
"""Domains that one slice can hold."""
MAX_SLICES = 1_000
"""Slices that one assignment can hold."""


class Domain(NamedTuple):
    """A domain, by its label values from the widest level to the narrowest, and the pods in it."""

    values: tuple[str, ...]
    pods: int


def decode(assignment: Tree) -> Iterator[Domain]:
    """Yield the domains of a v1beta2 ``topologyAssignment``, in order."""
    for each in assignment["slices"]:
        number: int = each["domainCount"]
        columns = [_spread(level, number) for level in each["valuesPerLevel"]]
        counts = each["podCounts"]
        pods: Sequence[int] = counts["individual"] if counts.get("individual") else (counts["universal"],) * number
        yield from map(Domain, zip(*columns, strict=True), pods)


def encode(levels: Sequence[str], domains: Sequence[Domain], *, by_hostname_prefix: bool = True) -> Tree:
    """Return the v1beta2 ``topologyAssignment`` of some domains, in their order.

    `by_hostname_prefix` is the gate TASAssignmentsEncodingByHostnamePrefix. O(domains × length of names).
    """
    if not by_hostname_prefix:
        return _assignment(levels, [domains])
    runs = list(_runs(levels, domains))
    split = _assignment(levels, runs)
    if len(runs) <= 1 or len(domains) > MAX_DOMAINS:
        return split
    single = _assignment(levels, [domains])
    return single if len(orjson.dumps(single)) < len(orjson.dumps(split)) else split


def _assignment(levels: Sequence[str], runs: Sequence[Sequence[Domain]]) -> Tree:
    return {"levels": list(levels), "slices": [_slice(run) for run in runs if run]}


def _slice(domains: Sequence[Domain]) -> Tree:
    counts = [each.pods for each in domains]
    return {
        "domainCount": len(domains),
        "valuesPerLevel": [_compact(values) for values in zip(*(each.values for each in domains), strict=True)],
        "podCounts": {"universal": counts[0]} if min(counts) == max(counts) else {"individual": counts},
    }


def _compact(values: tuple[str, ...]) -> Tree:
    """Return the values of one level as one value, or as prefix + root + suffix."""
    prefix = _common(values)
    if all(len(each) == len(prefix) for each in values):
        return {"universal": prefix}
    suffix = _common([each[::-1] for each in values])[::-1]
    # Where both overlap on the shortest value, the suffix has it.
    prefix = prefix[: min(map(len, values)) - len(suffix)]
    out: Tree = {"prefix": prefix} if prefix else {}
    if suffix:
        out["suffix"] = suffix
    out["roots"] = [each[len(prefix) : len(each) - len(suffix)] for each in values]
    return {"individual": out}


def _common(values: Sequence[str]) -> str:
    """Return the longest common prefix: the one of the first and the last in order."""
    first, last = min(values), max(values)
    return next((first[:at] for at, char in enumerate(first) if char != last[at]), first)


def _spread(level: Tree, number: int) -> Sequence[str]:
    individual = level.get("individual")
    if individual is None:
        return (level["universal"],) * number
    prefix, suffix = individual.get("prefix", ""), individual.get("suffix", "")
    return [f"{prefix}{root}{suffix}" for root in individual["roots"]]


def _runs(levels: Sequence[str], domains: Sequence[Domain]) -> Iterator[Sequence[Domain]]:
    """Yield consecutive domains of the same prefix of host names, at most `MAX_DOMAINS` at a time."""
    keys = _prefix_keys([each.values[-1] for each in domains]) if levels[-1:] == [HOSTNAME] and len(domains) > 1 else None
    start = 0
    for length in [len(domains)] if keys is None else [len(list(run)) for _, run in groupby(keys)]:
        for first in range(start, start + length, MAX_DOMAINS):
            yield domains[first : min(first + MAX_DOMAINS, start + length)]
        start += length


def _prefix_keys(names: Sequence[str]) -> list[str] | None:
    """Return the prefix that each name is grouped by, "" for none; None where no choice makes few enough slices.

    A prefix ends in ``-`` and is shared by at least two names. The longest are tried first; where they make too many slices, all names
    are grouped by prefixes of fewer words.
    """
    candidates = [[name[: at + 1] for at, char in enumerate(name[:-1]) if char == "-"] for name in names]
    seen: dict[str, int] = {}
    for prefixes in candidates:
        for prefix in prefixes:
            seen[prefix] = seen.get(prefix, 0) + 1
    for depth in range(max(map(len, candidates)), 0, -1):
        keys = [next((prefix for prefix in reversed(prefixes[:depth]) if seen[prefix] > 1), "") for prefixes in candidates]
        if sum(-(-len(list(run)) // MAX_DOMAINS) for _, run in groupby(keys)) <= MAX_SLICES:
            return keys
    return None
