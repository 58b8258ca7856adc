"""The rules of CustomResourceDefinitions beside those of their schemas: names, versions, paths, conversion, what may not change.

Mirrors ``pkg/apis/apiextensions/validation`` of apiextensions-apiserver (1.36), order, paths and texts included.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from kubemini.api.trees import Tree
from kubemini.machinery.errors import FieldError, duplicate, forbidden, invalid, not_supported, required, too_many
from kubemini.machinery.names import dns1035_label, dns1123_subdomain, faults
from kubemini.machinery.schema.fieldpaths import FieldPathError, field_path
from kubemini.machinery.schema.structure import Structure
from kubemini.server.kinds.crd.layout import Part, parts, schema_of_version, schemas, versions_of
from kubemini.server.kinds.crd.schema_validation import validate_schema
from kubemini.server.kinds.crd.structural_rules import has_structure

APPROVED = "api-approved.kubernetes.io"
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
MAX_SELECTABLE = 8
IMMUTABLE = "field is immutable"
_MIXED = "may have mixed case, but should otherwise match: "


def validate_crd(crd: Tree, old: Tree | None = None, *, established: bool = False) -> list[FieldError]:
    """Return the broken rules of a definition; with `old`, of an update of it. What an update leaves as it was is not looked at again."""
    errors: list[FieldError] = []
    if old is None:
        errors += _name_errors(crd)
    if old is None or crd.get("spec") != old.get("spec"):
        errors += _spec_errors(crd, old)
        if old is not None:
            errors += _immutable_errors(crd["spec"], old["spec"], established=established)
    status = crd.get("status") or {}
    errors += names_errors(status.get("acceptedNames") or {}, "status.acceptedNames")
    errors += _stored_version_errors(status.get("storedVersions") or [], versions_of(crd))
    errors += _approval_errors(crd, old)
    if (crd["spec"].get("preserveUnknownFields")) and not (old is not None and old["spec"].get("preserveUnknownFields")):
        detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(invalid("spec.preserveUnknownFields", True, detail))
    return errors


def _name_errors(crd: Tree) -> list[FieldError]:
    name, spec = crd["metadata"].get("name", ""), crd["spec"]
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    return [] if name == wanted else [invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def _joined(path: str, value: str, problem: str | None, lead: str = "") -> list[FieldError]:
    return [invalid(path, value, lead + ",".join(faults(problem)))] if problem else []


def _spec_errors(crd: Tree, old: Tree | None) -> list[FieldError]:
    spec = crd["spec"]
    group = spec.get("group") or ""
    errors: list[FieldError] = []
    if not group:
        errors.append(required("spec.group"))
    elif problem := dns1123_subdomain(group):
        errors += _joined("spec.group", group, problem)
    elif "." not in group:
        errors.append(invalid("spec.group", group, "should be a domain with at least one dot"))
    errors += _one_of("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced"))
    versions = versions_of(crd)
    for place, version in enumerate(versions):
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            errors.append(required(f"spec.versions[{place}].schema.openAPIV3Schema"))
    statuses = [bool((version.get("subresources") or {}).get("status") is not None) for version in versions]
    places = _by_version(crd)
    for place, version in enumerate(versions):
        errors += _joined(f"spec.versions[{place}].name", version.get("name") or "", dns1035_label(version.get("name") or ""))
        errors += _deprecation_errors(version, f"spec.versions[{place}].deprecationWarning")
        errors += _part_errors(crd, old, places, place, status=statuses[place])
    errors += _version_set_errors(versions)
    names = spec.get("names") or {}
    errors += [required(f"spec.names.{key}") for key in ("plural", "singular", "kind", "listKind") if not names.get(key)]
    errors += names_errors(names, "spec.names")
    errors += _part_errors(crd, old, places, -1, status=any(statuses))
    errors += _conversion_errors(spec.get("conversion"))
    return errors


def _version_set_errors(versions: list[Tree]) -> list[FieldError]:
    errors: list[FieldError] = []
    named = [version.get("name") for version in versions]
    if len(set(named)) < len(named):
        errors.append(invalid("spec.versions", versions, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        errors.append(invalid("spec.versions", versions, "must have exactly one version marked as storage version"))
    if versions and versions[0].get("name"):
        errors += _joined("spec.version", versions[0]["name"], dns1035_label(versions[0]["name"]))
    return errors


def _one_of(path: str, value: str, accepted: tuple[str, ...]) -> list[FieldError]:
    if not value:
        return [required(path)]
    return [] if value in accepted else [not_supported(path, value, accepted)]


def names_errors(names: Tree, path: str) -> list[FieldError]:
    """Return what is wrong with a set of names."""
    errors: list[FieldError] = []
    for key in ("plural", "singular"):
        if names.get(key):
            errors += _joined(f"{path}.{key}", names[key], dns1035_label(names[key]))
    for key in ("kind", "listKind"):
        if names.get(key):
            errors += _joined(f"{path}.{key}", names[key], dns1035_label(names[key].lower()), _MIXED)
    for place, each in enumerate(names.get("shortNames") or ()):
        errors += _joined(f"{path}.shortNames[{place}]", each, dns1035_label(each))
    if names.get("kind") and names["kind"] == names.get("listKind"):
        errors.append(invalid(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same"))
    for place, each in enumerate(names.get("categories") or ()):
        errors += _joined(f"{path}.categories[{place}]", each, dns1035_label(each))
    return errors


def _deprecation_errors(version: Tree, path: str) -> list[FieldError]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return []
    if not version.get("deprecated"):
        return [invalid(path, warning, "can only be set for deprecated versions")]
    problems: list[str] = []
    if len(warning.encode()) > 256:
        problems.append("must be <= 256 characters long")
    if not warning:
        problems.append("must not be an empty string")
    bad = next((place for place, char in enumerate(warning) if not char.isprintable()), None)
    if bad is not None:
        problems.append(f"must only contain printable UTF-8 characters; non-printable character found at index {bad}")
    return [invalid(path, warning, problem) for problem in problems]


# ----------------------------------------------------------------------------------------------- parts of versions

_Parts = dict[str, dict[int, Part]]


def _by_version(crd: Tree) -> _Parts:
    """Return the parts by what they are and by version; -1 stands for all versions."""
    return {
        "schema": {part.index: part for part in schemas(crd)},
        "subresources": {part.index: part for part in parts(crd, "subresources", "subresources")},
        "columns": {part.index: part for part in parts(crd, "additionalPrinterColumns", "additionalPrinterColumns")},
        "selectable": {part.index: part for part in parts(crd, "selectableFields", "selectableFields")},
    }


def _part_errors(crd: Tree, old: Tree | None, places: _Parts, index: int, *, status: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    schema = places["schema"].get(index)
    if schema is not None and not _known(crd, old, schema):
        errors += validate_schema(schema.value, schema.path, status=status)
    if (found := places["subresources"].get(index)) is not None:
        errors += _subresource_errors(found.value, found.path)
    if (found := places["columns"].get(index)) is not None:
        for place, column in enumerate(found.value):
            errors += _column_errors(column, f"{found.path}[{place}]")
    if (found := places["selectable"].get(index)) is not None:
        version = versions_of(crd)[max(index, 0)]
        errors += _selectable_errors(found.value, (version.get("schema") or {}).get("openAPIV3Schema"), found.path)
    return errors


def _known(crd: Tree, old: Tree | None, schema: Part) -> bool:
    """Tell whether the old definition had the very same schema, which was accepted then."""
    if old is None:
        return False
    names = [schema.version] if schema.version else [version.get("name", "") for version in versions_of(crd)]
    return any(schema_of_version(old, name) == schema.value for name in names)


def _subresource_errors(subresources: Tree, path: str) -> list[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return []
    errors: list[FieldError] = []
    for key, roots, under in (("specReplicasPath", (".spec.",), ".spec"), ("statusReplicasPath", (".status.",), ".status")):
        value = scale.get(key) or ""
        where = f"{path}.scale.{key}"
        errors += [required(where)] if not value else _rooted(value, where, roots, f"should be a json path under {under}")
    selector = scale.get("labelSelectorPath")
    if selector:
        errors += _rooted(selector, f"{path}.scale.labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status")
    return errors


def _rooted(value: str, path: str, roots: tuple[str, ...], detail: str) -> list[FieldError]:
    return _simple_path_errors(value, path) or ([] if value.startswith(roots) else [invalid(path, value, detail)])


def _simple_path_errors(value: str, path: str) -> list[FieldError]:
    return [] if value.startswith(".") else [invalid(path, value, "must be a simple json path starting with .")]


def _column_errors(column: Tree, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not column.get("name"):
        errors.append(required(f"{path}.name"))
    type_, form, json_path = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
    if not type_:
        errors.append(required(f"{path}.type", f"must be one of {','.join(COLUMN_TYPES)}"))
    elif type_ not in COLUMN_TYPES:
        errors.append(invalid(f"{path}.type", type_, f"must be one of {','.join(COLUMN_TYPES)}"))
    if form and form not in COLUMN_FORMATS:
        errors.append(invalid(f"{path}.format", form, f"must be one of {','.join(COLUMN_FORMATS)}"))
    errors += _simple_path_errors(json_path, f"{path}.JSONPath") if json_path else [required(f"{path}.JSONPath")]
    return errors


def _selectable_errors(fields: list[Tree], schema: Tree | None, path: str) -> list[FieldError]:
    if schema is None:
        return [invalid(path, "", "may only be set when validations.schema is included")]
    if not has_structure(schema):
        return []
    root = Structure(schema).root
    errors: list[FieldError] = []
    seen: dict[str, None] = {}
    for place, each in enumerate(fields):
        text = each.get("jsonPath") or ""
        where = f"{path}[{place}].jsonPath"
        if not text:
            errors.append(required(where))
            continue
        try:
            found = field_path(text, root, arrays=False)
        except FieldPathError as error:
            errors.append(invalid(where, text, f"is an invalid path: {error}"))
            continue
        if found.parts[:1] == ("metadata",):
            errors.append(invalid(where, text, "must not point to fields in metadata"))
        if found.node is None or found.node.schema.get("type") not in {"string", "boolean", "integer"}:
            detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
            errors.append(invalid(where, text, detail))
        if found.text in seen:
            errors.append(duplicate(where, text))
        seen[found.text] = None
    if len(seen) > MAX_SELECTABLE:
        errors.append(too_many(path, len(seen), MAX_SELECTABLE))
    return errors


# ----------------------------------------------------------------------------------------------- conversion


def _conversion_errors(conversion: Tree | None) -> list[FieldError]:
    if conversion is None:
        return []
    path = "spec.conversion"
    errors = _one_of(f"{path}.strategy", conversion.get("strategy") or "", ("None", "Webhook"))
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if conversion.get("strategy") != "Webhook":
        detail = "should not be set when strategy is not set to Webhook"
        if client is not None:
            errors.append(forbidden(f"{path}.webhookClientConfig", detail))
        if reviews:
            errors.append(forbidden(f"{path}.conversionReviewVersions", detail))
        return errors
    if client is None:
        errors.append(required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook"))
    else:
        errors += _client_errors(client, f"{path}.webhookClientConfig")
    return errors + _review_errors(reviews, f"{path}.conversionReviewVersions")


def _client_errors(client: Tree, path: str) -> list[FieldError]:
    url, service = client.get("url"), client.get("service")
    if url is not None and service is None:
        return _url_errors(url, f"{path}.url")
    if url is not None or service is None:
        return [required(path, "exactly one of url or service is required")]
    errors: list[FieldError] = []
    where = f"{path}.service"
    errors += [required(f"{where}.{key}") for key in ("name", "namespace") if not service.get(key)]
    port = service.get("port", 443)
    if not 1 <= port <= 65535:
        errors.append(invalid(f"{where}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    if service.get("path") is not None and not service["path"].startswith("/"):
        errors.append(invalid(f"{where}.path", service["path"], "must start with a '/'"))
    return errors


def _url_errors(url: str, path: str) -> list[FieldError]:
    form = "; desired format: https://host[/path]"
    parsed = urlsplit(url)
    user, at, host = parsed.netloc.rpartition("@")
    errors: list[FieldError] = []
    if parsed.scheme != "https":
        errors.append(invalid(path, parsed.scheme, f"'https' is the only allowed URL scheme{form}"))
    if not host:
        errors.append(invalid(path, "", f"host must be specified{form}"))
    if at:
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parsed.fragment:
        errors.append(invalid(path, parsed.fragment, "fragments are not permitted in the URL"))
    if parsed.query:
        errors.append(invalid(path, parsed.query, "query parameters are not permitted in the URL"))
    return errors


def _review_errors(reviews: list[str], path: str) -> list[FieldError]:
    if not reviews:
        return [required(path)]
    errors: list[FieldError] = []
    for place, version in enumerate(reviews):
        if version in reviews[:place]:
            errors.append(invalid(f"{path}[{place}]", version, "duplicate version"))
            continue
        errors += [invalid(f"{path}[{place}]", version, fault) for fault in faults(dns1035_label(version))]
    if not {"v1", "v1beta1"} & set(reviews):
        errors.append(invalid(path, reviews, "must include at least one of v1, v1beta1"))
    return errors


# ----------------------------------------------------------------------------------------------- updates, stored versions, approval


def _immutable_errors(spec: Tree, old: Tree, *, established: bool) -> list[FieldError]:
    names, old_names = spec.get("names") or {}, old.get("names") or {}
    watched: list[tuple[str, Any, Any]] = []
    if established:
        watched += [("spec.scope", spec.get("scope"), old.get("scope")), ("spec.names.kind", names.get("kind"), old_names.get("kind"))]
    watched += [("spec.group", spec.get("group"), old.get("group")), ("spec.names.plural", names.get("plural"), old_names.get("plural"))]
    return [invalid(path, new, IMMUTABLE) for path, new, before in watched if new != before]


def _stored_version_errors(stored: list[str], versions: list[Tree]) -> list[FieldError]:
    path = "status.storedVersions"
    if not stored:
        return [invalid(path, stored, "must have at least one stored version")]
    errors: list[FieldError] = []
    left = {name: place for place, name in enumerate(stored)}
    for version in versions:
        name = version.get("name", "")
        if version.get("storage") and name not in left:
            errors.append(invalid(path, stored, f"must have the storage version {name}"))
        left.pop(name, None)
    for name, place in left.items():
        detail = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration "
            f"ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
        )
        errors.append(invalid(f"{path}[{place}]", name, detail))
    return errors


def is_protected(group: str) -> bool:
    """Tell whether APIs of a group need the community's approval."""
    return group in {"k8s.io", "kubernetes.io"} or group.endswith((".k8s.io", ".kubernetes.io"))


def approval(crd: Tree) -> tuple[str, str]:
    """Return the state of a definition's approval (missing, bypassed, approved, invalid), and its reason."""
    said = (crd["metadata"].get("annotations") or {}).get(APPROVED, "")
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not said:
        return "missing", f'protected groups must have approval annotation "{APPROVED}", {see}'
    if said.startswith("unapproved"):
        return "bypassed", f'not approved: "{said}"'
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://[^/]", said):
        return "approved", f"approved in {said}"
    return "invalid", f'protected groups must have approval annotation "{APPROVED}" with either a URL or a reason starting with "unapproved", {see}'


def _approval_errors(crd: Tree, old: Tree | None) -> list[FieldError]:
    if not is_protected(crd["spec"].get("group") or ""):
        return []
    state, reason = approval(crd)
    if old is not None and approval(old)[0] == state:
        return []
    path = f"metadata.annotations[{APPROVED}]"
    if state == "missing":
        return [required(path, reason)]
    if state == "invalid":
        return [invalid(path, (crd["metadata"].get("annotations") or {}).get(APPROVED, ""), reason)]
    return []
