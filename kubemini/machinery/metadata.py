"""The rules of ObjectMeta that hold for every kind: names, labels, annotations, owners, finalizers, what may never change.

Pure functions from metadata trees to field errors, in upstream's order. Types are the codec's affair: here labels are
maps of strings and so on. Mirrors apimachinery's ``pkg/api/validation/objectmeta.go``, core's additions to it for
finalizers, and the warnings of the request handlers (1.36).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, forbidden, invalid, not_supported, required, too_long
from kubemini.machinery.labels import validate_labels
from kubemini.machinery.memo import IdentityMemo
from kubemini.machinery.names import NameRule, dns1123_label, errors, label_value, qualified_name

IMMUTABLE = "field is immutable"
NEGATIVE = "must be greater than or equal to 0"
MAX_ANNOTATIONS = 256 * 1024
"""Bytes of all annotation keys and values together."""
MAX_FIELD_MANAGER = 128
_NOTHING: Tree = {}

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
STANDARD_FINALIZERS = frozenset({"kubernetes", ORPHAN, FOREGROUND})


def validate_metadata_create(
    meta: Mapping[str, Any], *, namespaced: bool, validate_name: NameRule, custom: bool = False, field: str = "metadata"
) -> list[FieldError]:
    """Return the broken rules of a new object's metadata, its name already generated.

    `validate_name` is the kind's rule (``validate_name(name, prefix=…) -> str | None``). Finalizers without a domain must be
    standard ones, except of `custom` resources: they get a warning instead (`metadata_warnings`).
    `field` is the path of the metadata, such as ``spec.template.metadata``.
    """
    found: list[FieldError] = []
    generate_name, name = meta.get("generateName"), meta.get("name")
    wrong = validate_name(name, prefix=False) if name else None
    # What a good name begins with is good
    if generate_name and (wrong or not name or not name.startswith(generate_name) or generate_name.endswith(".")):
        problem = validate_name(generate_name, prefix=True)
        if problem:
            found += errors(f"{field}.generateName", generate_name, problem)
    if not name:
        found.append(required(f"{field}.name", "name or generateName is required"))
    elif wrong:
        found += errors(f"{field}.name", name, wrong)
    found += _validate_namespace(meta.get("namespace") or "", f"{field}.namespace", namespaced=namespaced)
    generation = meta.get("generation") or 0
    if generation < 0:
        found.append(invalid(f"{field}.generation", generation, NEGATIVE))
    found += _validate_maps(meta, field, _NOTHING)
    found += _validate_lists(meta, field, custom=custom)
    return found


def validate_metadata_update(new: Mapping[str, Any], old: Mapping[str, Any], *, custom: bool = False, field: str = "metadata") -> list[FieldError]:
    """Return the broken rules of an update: what may not change, and the rules that hold for any metadata."""
    found: list[FieldError] = []
    finalizers = new.get("finalizers") or ()
    if old.get("deletionTimestamp") is not None:
        extra = sorted(set(finalizers) - set(old.get("finalizers") or ()))
        if extra:
            listed = ", ".join(f'"{each}"' for each in extra)
            detail = f"no new finalizers can be added if the object is being deleted, found new finalizers []string{{{listed}}}"
            found.append(forbidden(f"{field}.finalizers", detail))
    generation = new.get("generation") or 0
    if generation < (old.get("generation") or 0):
        found.append(invalid(f"{field}.generation", generation, "must not be decremented"))
    for name in ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"):
        after, before = new.get(name), old.get(name)
        if after is not before and after != before and (after or before):
            found.append(invalid(f"{field}.{name}", _shown(name, after), IMMUTABLE))
    found += _validate_maps(new, field, old)
    found += _validate_lists(new, field, custom=custom)
    return found


def metadata_problems_of_update(new: Mapping[str, Any], old: Mapping[str, Any], *, custom: bool = False, again: str = "") -> list[FieldError]:
    """Return what is wrong with the metadata of an update as often as upstream finds it: as metadata, as a change of it, and once more as the kind's.

    The strategy of nearly every kind checks the change again, so that what may not change stands among the causes twice, and what is wrong in itself three times.
    Some look at the metadata as at that of a new object too, `again`: ``before`` the change or ``after`` it.
    """
    last = validate_metadata_update(new, old, custom=custom)
    if not last:
        return last
    first = _validate_maps(new, "metadata", old) + _validate_lists(new, "metadata", custom=True)
    whole = _validate_maps(new, "metadata", old) + _validate_lists(new, "metadata", custom=custom) if again else []
    first += validate_metadata_update(new, old, custom=True)
    return [*first, *whole, *last] if again == "before" else [*first, *last, *whole]


_STANDARD: IdentityMemo[bool] = IdentityMemo(1024)
"""Lists of finalizers that are good for any kind; the pods of one Job share theirs."""


def _validate_lists(meta: Mapping[str, Any], field: str, *, custom: bool) -> list[FieldError]:
    """Return the broken rules of finalizers and managedFields."""
    finalizers, managed = meta.get("finalizers"), meta.get("managedFields")
    if not managed and (not finalizers or _STANDARD.get(finalizers)):
        return []
    found = validate_finalizers(finalizers or (), f"{field}.finalizers")
    problems = _validate_standard_finalizers(finalizers or (), f"{field}.finalizers")
    if finalizers and not found and not problems:
        _STANDARD.put(finalizers, True)
    found += validate_managed_fields(_kept_entries(managed), f"{field}.managedFields")
    return found if custom else found + problems


def _shown(name: str, value: Any) -> Any:
    """Return an absent value as its Go type prints: texts are empty, times and numbers null."""
    return "" if value is None and name in {"name", "namespace", "uid"} else value


def _validate_namespace(namespace: str, field: str, *, namespaced: bool) -> list[FieldError]:
    if not namespaced:
        return [forbidden(field, "not allowed on this type")] if namespace else []
    return errors(field, namespace, _namespace_problem(namespace)) if namespace else [required(field)]


_namespace_problem = lru_cache(maxsize=4096)(dns1123_label)


def _validate_maps(meta: Mapping[str, Any], field: str, old: Mapping[str, Any]) -> list[FieldError]:
    """Return the broken rules of labels, annotations and owners; what is the very same as in `old` was checked before."""
    found: list[FieldError] = []
    labels, annotations, owners = meta.get("labels"), meta.get("annotations"), meta.get("ownerReferences")
    if labels and labels is not old.get("labels") and not _sound(labels):
        found += validate_labels(labels, f"{field}.labels")
    if annotations and annotations is not old.get("annotations"):
        found += validate_annotations(annotations, f"{field}.annotations")
    if owners and owners is not old.get("ownerReferences"):
        kept = _OWNERS.get(owners)
        found += _OWNERS.put(owners, validate_owner_references(owners, f"{field}.ownerReferences")) if kept is None or kept else kept
    return found


_OWNERS: IdentityMemo[list[FieldError]] = IdentityMemo(1024)
"""Lists of owners that were found good (the pods of one Job share theirs); those found bad are looked at again, for the path in the texts."""
_SOUND: set[tuple[str, str]] = set()
"""Label pairs that were found good."""
_SOUND_LIMIT = 8192


def _sound(labels: Mapping[str, str]) -> bool:
    if labels.items() <= _SOUND:
        return True
    for pair in labels.items():
        if pair not in _SOUND:
            if qualified_name(pair[0]) or label_value(pair[1]):
                return False
            if len(_SOUND) >= _SOUND_LIMIT:
                _SOUND.clear()
            _SOUND.add(pair)
    return True


# ----------------------------------------------------------------------------------------------- the parts


def validate_annotations(annotations: Mapping[str, str] | None, field: str) -> list[FieldError]:
    """Return the broken rules of annotations: keys as of labels (in any case), 256 KiB altogether."""
    found: list[FieldError] = []
    if not annotations:
        return found
    if not annotations.keys() <= _ANNOTATIONS:
        for key in annotations:
            if key not in _ANNOTATIONS:
                problem = qualified_name(key.lower())
                if problem:
                    found += errors(field, key, problem)
                else:
                    _remember(key)
    total = sum(map(len, annotations)) + sum(map(len, annotations.values()))
    if total * 4 > MAX_ANNOTATIONS and sum(_size(key) + _size(value) for key, value in annotations.items()) > MAX_ANNOTATIONS:
        found.append(too_long(field, MAX_ANNOTATIONS))
    return found


_ANNOTATIONS: set[str] = set()
"""Keys of annotations that were found good."""


def _remember(key: str) -> None:
    if len(_ANNOTATIONS) >= _SOUND_LIMIT:
        _ANNOTATIONS.clear()
    _ANNOTATIONS.add(key)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def validate_owner_references(owners: Sequence[Mapping[str, Any]], field: str) -> list[FieldError]:
    """Return the broken rules of owner references; all stand at the path of the list."""
    found: list[FieldError] = []
    controller = ""
    for each in owners:
        found += _validate_owner(each, field)
        if each.get("controller"):
            name = f"{each.get('kind', '')}/{each.get('name', '')}"
            if controller:
                detail = f'Only one reference can have Controller set to true. Found "true" in references for {controller} and {name}'
                found.append(invalid(field, list(owners), detail))
            else:
                controller = name
    return found


def _validate_owner(owner: Mapping[str, Any], field: str) -> list[FieldError]:
    found: list[FieldError] = []
    api_version, kind = owner.get("apiVersion") or "", owner.get("kind") or ""
    if not api_version.rpartition("/")[2]:
        found.append(invalid(f"{field}.apiVersion", api_version, "version must not be empty"))
    for name in ("kind", "name", "uid"):
        if not owner.get(name):
            found.append(invalid(f"{field}.{name}", owner.get(name) or "", "must not be empty"))
    if api_version == "v1" and kind == "Event":
        found.append(invalid(field, dict(owner), "/v1, Kind=Event is disallowed from being an owner"))
    return found


def validate_finalizers(finalizers: Sequence[str], field: str) -> list[FieldError]:
    """Return the broken rules of finalizers of any kind: qualified names, and not both kinds of propagation."""
    if not finalizers:
        return []
    found: list[FieldError] = []
    for each in finalizers:
        if problem := qualified_name(each):
            found += errors(field, each, problem)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        found.append(invalid(field, list(finalizers), f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"))
    return found


def _validate_standard_finalizers(finalizers: Sequence[str], field: str) -> list[FieldError]:
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{field}[{index}]", each, detail) for index, each in enumerate(finalizers) if "/" not in each and each not in STANDARD_FINALIZERS
    ]


def _kept_entries(entries: Sequence[Mapping[str, Any]] | None) -> Sequence[Mapping[str, Any]]:
    """Return the entries that count: a list with a malformed one is put back by field tracking, and ``[{}]`` clears."""
    known = {"Apply", "Update"}
    if not entries or any(each.get("operation") not in known or each.get("fieldsType") != "FieldsV1" for each in entries):
        return ()
    return entries


def validate_managed_fields(entries: Sequence[Mapping[str, Any]], field: str) -> list[FieldError]:
    """Return the broken rules of managedFields entries that a client sent."""
    found: list[FieldError] = []
    for index, each in enumerate(entries):
        here = f"{field}[{index}]"
        operation = each.get("operation") or ""
        if not operation:
            found.append(required(f"{here}.operation", "must not be empty"))
        elif operation not in {"Apply", "Update"}:
            found.append(not_supported(f"{here}.operation", operation, ("Apply", "Update")))
        if each.get("fieldsType") and each["fieldsType"] != "FieldsV1":
            found.append(invalid(f"{here}.fieldsType", each["fieldsType"], "must be `FieldsV1`"))
        found += validate_field_manager(each.get("manager") or "", f"{here}.manager")
        if _size(each.get("subresource") or "") > 256:
            found.append(too_long(f"{here}.subresource", 256))
    return found


def validate_field_manager(manager: str, field: str = "fieldManager") -> list[FieldError]:
    """Return the broken rules of a manager's name: at most 128 bytes, printable characters only."""
    found: list[FieldError] = []
    if _size(manager) > MAX_FIELD_MANAGER:
        found.append(too_long(field, MAX_FIELD_MANAGER))
    if not manager.isprintable():
        at = 0
        for each in manager:
            if not each.isprintable():
                found.append(invalid(field, manager, f"invalid character U+{ord(each):04X} (at position {at})"))
            at += _size(each)
    return found


# ----------------------------------------------------------------------------------------------- repairs and warnings


def dedup_owner_references(meta: Tree, *, after_admission: bool = False) -> tuple[Tree, str | None]:
    """Return metadata without repeated owner references (equal in every field, the first one stays), and the warning for it."""
    owners = meta.get("ownerReferences")
    if not owners or len(owners) < 2:
        return meta, None
    kept: list[Tree] = []
    doubled: list[str] = []
    for each in owners:
        if each not in kept:
            kept.append(each)
        elif each.get("uid", "") not in doubled:
            doubled.append(each.get("uid", ""))
    if not doubled:
        return meta, None
    when = " after mutating admission happens" if after_admission else ""
    warning = (
        f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, "
        f"and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {', '.join(doubled)}"
    )
    return {**meta, "ownerReferences": kept}, warning


def metadata_warnings(new: Mapping[str, Any], *, custom: bool = False, old: Mapping[str, Any] | None = None, field: str = "metadata") -> list[str]:
    """Return the warnings about metadata: finalizers of a custom resource that have no domain and were not there before."""
    finalizers = new.get("finalizers")
    if not custom or not finalizers:
        return []
    before = (old or {}).get("finalizers") or ()
    return [
        f'{field}.finalizers: "{each}": prefer a domain-qualified finalizer name including a path (/) '
        "to avoid accidental conflicts with other finalizer writers"
        for each in finalizers
        if "/" not in each and each not in STANDARD_FINALIZERS and each not in before
    ]
