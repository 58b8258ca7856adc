"""Hashes in names (of revisions, Workloads, PodGroups), byte for byte as upstream makes them."""

from __future__ import annotations

import json

from kubemini.api.trees import Tree
from kubemini.machinery.gotext import go_escaped

ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""What the digits of a hash are written with: no vowels, no digits that look like letters, so that no name reads as a word."""

_OFFSET, _PRIME, _MASK = 2166136261, 16777619, 0xFFFFFFFF


def go_json(tree: Tree) -> bytes:
    r"""Return the bytes that Go's ``json.Marshal`` gives for a map: compact, keys sorted, safe inside HTML.

    >>> go_json({"b": "<a>", "a": [1, True, None]})
    b'{"a":[1,true,null],"b":"\\u003ca\\u003e"}'
    """
    return go_escaped(json.dumps(tree, separators=(",", ":"), sort_keys=True, ensure_ascii=False)).encode()


def fnv1(data: bytes) -> int:
    """Return the 32-bit FNV-1 hash (not 1a).

    >>> fnv1(b""), fnv1(b"a")
    (2166136261, 84696446)
    """
    value = _OFFSET
    for byte in data:
        value = (value * _PRIME & _MASK) ^ byte
    return value


def fnv1a(data: bytes) -> int:
    """Return the 32-bit FNV-1a hash.

    >>> fnv1a(b""), fnv1a(b"a")
    (2166136261, 3826002220)
    """
    value = _OFFSET
    for byte in data:
        value = (value ^ byte) * _PRIME & _MASK
    return value


def safe_encode(text: str) -> str:
    """Return a text of as many characters of `ALPHABET`.

    >>> safe_encode("3506514611")
    '794b958b55'
    """
    return "".join(ALPHABET[ord(character) % len(ALPHABET)] for character in text)


def revision_hash(data: Tree, probe: int | None = None) -> str:
    """Return the hash of a revision's data; `probe` is the collision count where the owner has one. O(bytes of the data)."""
    return safe_encode(str(fnv1(go_json(data) + (b"" if probe is None else str(probe).encode()))))
