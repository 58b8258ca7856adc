"""Rules of the spec of a PersistentVolumeClaim, and advice on it, for claims themselves and for claim templates."""

from __future__ import annotations

from collections.abc import Iterator

from kubemini.api.trees import Tree
from kubemini.machinery import labels, names, quantity
from kubemini.machinery.errors import forbidden, invalid, not_supported, required
from kubemini.server.kinds.core.formats import POSITIVE, Errors, wrong
from kubemini.server.kinds.core.pod_resources import amount

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def claim_spec(spec: Tree, path: str = "spec") -> Errors:
    """Check the spec of a claim at `path` (a StatefulSet's ``spec.volumeClaimTemplates[0].spec``, too)."""
    modes = spec.get("accessModes") or []
    if not modes:
        yield required(f"{path}.accessModes", "at least 1 access mode is required")
    yield from labels.validate_label_selector(spec.get("selector"), f"{path}.selector")
    for mode in modes:
        if mode not in ACCESS_MODES:
            yield not_supported(f"{path}.accessModes", mode, ACCESS_MODES)
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES and mode != "ReadWriteOncePod" for mode in modes):
        yield forbidden(f"{path}.accessModes", "may not use ReadWriteOncePod with other access modes")
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    where = f"{path}.resources[storage]"
    if size is None:
        yield required(where)
    elif quantity.nano(size) <= 0:
        yield invalid(where, size, POSITIVE)
    else:
        yield from amount("storage", size, where)
    for key in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(key):
            yield from wrong(names.dns1123_subdomain, spec[key], f"{path}.{key}")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        yield not_supported(f"{path}.volumeMode", mode, VOLUME_MODES)
    yield from _sources(spec, path)


def _sources(spec: Tree, path: str) -> Errors:
    """Check what a claim is to be filled from."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for key, tree in (("dataSource", source), ("dataSourceRef", reference)):
        if tree is None:
            continue
        here, group = f"{path}.{key}", tree.get("apiGroup") or ""
        for name in ("name", "kind"):
            if not tree.get(name):
                yield required(f"{here}.{name}")
        if not group and tree.get("kind") != "PersistentVolumeClaim":
            yield invalid(here, tree.get("kind", ""), "must be 'PersistentVolumeClaim' when referencing the default apiGroup")
        elif group:
            yield from wrong(names.dns1123_subdomain, group, f"{here}.apiGroup")
    if source is not None and reference is not None:
        if reference.get("namespace"):
            yield invalid(path, f"{path}.dataSource", "may not be specified when dataSourceRef.namespace is specified")
        elif any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
            yield invalid(path, f"{path}.dataSource", "must match dataSourceRef")


def claim_warnings(claim: Tree) -> Iterator[str]:
    """Yield the warnings about a PersistentVolumeClaim."""
    if _BETA_CLASS in (claim["metadata"].get("annotations") or {}):
        yield f'metadata.annotations[{_BETA_CLASS}]: deprecated since v1.8; use "storageClassName" attribute instead'
    yield from claim_spec_warnings(claim.get("spec") or {}, "spec")


def claim_spec_warnings(spec: Tree, path: str) -> Iterator[str]:
    """Yield the warnings about what a claim at `path` asks for."""
    for kind in ("requests", "limits"):
        amount = ((spec.get("resources") or {}).get(kind) or {}).get("storage")
        if amount is not None and quantity.milli(amount) % 1000:
            yield f'{path}.resources.{kind}[storage]: fractional byte value "{amount}" is invalid, must be an integer'
