"""Boil the definitions of Kubernetes down to the files of ``data/``; run as ``python -m kubemini.api.schemas.boil``.

Three sources are merged. The package ``kubernetes-validate`` (needed for this alone) brings the published OpenAPI definitions of every
Kubernetes version: fields, types, list types, merge keys, enums. A table of tab-separated values (``--fields``) adds what OpenAPI does
not say, one row per Go struct field: protobuf numbers, pointers, ``omitempty``, defaults. Where the table lacks a type, another version of
the same group lends its facts, except numbers; where that fails too, the shape of the field decides (`guess`). ``go_names.tsv`` beside this file
names the Go types of strings, and the values of enums.

The output is text, one line per field, so that a new Kubernetes version is a reviewable diff::

    Container
      args []string #4 list=atomic
      env []EnvVar #7 list=map:name patch=merge:name
      resizePolicy []ContainerResizePolicy #23 list=atomic @32-

Words of a line: the shape and element type (unqualified names live in the same file), ``#`` the protobuf numbers down to the field
(several where Go inlines structs), ``ptr`` a pointer, ``req`` always serialised, ``in`` the inlined structs, ``required`` as OpenAPI says, the merge rules, ``go`` the Go name
of the element type, ``goas`` that of a whole list or map, ``enum`` its values (blanks as ``%20``),
``@`` the minor versions that have it in this form (all that have the type where it is missing), and last ``default`` in JSON.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import orjson

DATA = Path(__file__).parent / "data"
NAMES = Path(__file__).parent / "go_names.tsv"
MORE = Path(__file__).parent / "more_fields.tsv"
FIRST, LAST = 31, 37

LEAVES = {
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": "Time",
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": "MicroTime",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": "FieldsV1",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "RawExtension",
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "IntOrString",
    **{
        f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.{name}": name
        for name in ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")
    },
}
SKIPPED = {"io.k8s.apimachinery.pkg.version.Info", "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"}
FORMATS = {"int32": "int32", "int64": "int64", "double": "double", "byte": "bytes"}
BARE = {"string": "string", "boolean": "bool", "integer": "int64", "number": "double"}

UNPUBLISHED_KINDS = {
    "admission/v1.AdmissionReview": ("admission.k8s.io", "v1"),
    "apiextensions/v1.ConversionReview": ("apiextensions.k8s.io", "v1"),
    **{
        f"meta/v1.{kind}": ("meta.k8s.io", "v1")
        for kind in (
            "CreateOptions",
            "GetOptions",
            "ListOptions",
            "PartialObjectMetadata",
            "PartialObjectMetadataList",
            "PatchOptions",
            "Table",
            "UpdateOptions",
        )
    },
}
"""Kinds that OpenAPI does not list, though bodies and query options have them."""

SPELLED = {
    "GroupVersionKind": "meta/v1.GroupVersionKind",
    "GroupVersionResource": "meta/v1.GroupVersionResource",
    "CustomResourceSubresourceStatus": "apiextensions/v1.CustomResourceSubresourceStatus",
    "list of string": "strings",
    **{f"apiextensions/v1.{name}": name for name in ("JSON", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrStringArray")},
}
"""How the table and the files spell the same element type."""
NOT_INLINED = {("storage/v1.VolumeAttachmentSource", "core/v1.PersistentVolumeSpec"): "inlineVolumeSpec"}
"""Rows that the table calls inlined because the JSON name begins with that word."""

OMITTED_ZERO = {("meta/v1.ObjectMeta", "creationTimestamp"): 34}
"""Structs and times that Go leaves out when zero (``omitzero``), and since which minor version."""

NULLED = {
    "admissionregistration/v1.MutatingWebhook.sideEffects",
    "admissionregistration/v1.ValidatingWebhook.sideEffects",
    "apps/v1.DaemonSetSpec.selector",
    "apps/v1.DeploymentSpec.selector",
    "apps/v1.ReplicaSetSpec.selector",
    "apps/v1.StatefulSetSpec.selector",
    "authentication/v1.TokenRequestSpec.boundObjectRef",
    "authentication/v1.TokenRequestSpec.expirationSeconds",
    "core/v1.AzureFilePersistentVolumeSource.secretNamespace",
    "core/v1.GRPCAction.service",
    "core/v1.ScaleIOPersistentVolumeSource.secretRef",
    "core/v1.ScaleIOVolumeSource.secretRef",
    "core/v1.TypedLocalObjectReference.apiGroup",
    "core/v1.TypedObjectReference.apiGroup",
    "flowcontrol/v1.LimitedPriorityLevelConfiguration.nominalConcurrencyShares",
    "networking/v1.HTTPIngressPath.pathType",
    "networking/v1.IngressClassParametersReference.scope",
    "resource/v1.CapacityRequestPolicy.default",
    "resource/v1beta1.CapacityRequestPolicy.default",
    "resource/v1beta2.CapacityRequestPolicy.default",
    "scheduling/v1alpha2.PodGroupSpec.podGroupTemplateRef",
    "scheduling/v1alpha2.PodGroupTemplate.schedulingConstraints",
    "scheduling/v1alpha2.PodGroupTemplateReference.workload",
}
"""Pointers that Go serialises as null when nil; the table only says that they are pointers."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One row of the table."""

    shape: str
    type: str
    numbers: tuple[int, ...]
    flag: str
    strategy: str
    merging: str
    default: str
    inlined: str = ""
    """The Go structs that Go inlines around the field, outermost first, joined by dots."""

    @property
    def spelled(self) -> str:
        """The shape and type as a line has them."""
        return f"{self.shape}{self.type}"


Facts = dict[str, dict[str, Fact]]
Names = dict[tuple[str, str], list[str]]
"""By type and field: the words about Go names and enums."""


# ----------------------------------------------------------------------------------------------- the table


def read_facts(text: str) -> Facts:
    """Return the facts by type and JSON name, inlined structs flattened."""
    own: Facts = {}
    inlined: dict[str, list[tuple[str, int]]] = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        owner, name, cardinality, kind, number, _wire, flag, strategy, merging = line.split("\t")
        name = NOT_INLINED.get((owner, kind), name)
        if name == "(inline)":
            inlined.setdefault(owner, []).append((kind, int(number)))
            own.setdefault(owner, {})
            continue
        merging, _, default = merging.partition(" default=")
        shape = {"one": "", "list": "[]", "map": "map[]"}[cardinality]
        numbers = (int(number),) if number else ()
        own.setdefault(owner, {})[name] = Fact(shape, SPELLED.get(kind, kind), numbers, flag, strategy, merging.strip(), default)

    def flat(owner: str) -> dict[str, Fact]:
        fields = dict(own[owner])
        for kind, number in inlined.get(owner, ()):
            for name, fact in flat(kind).items():
                within = f"{kind.rpartition('.')[2]}.{fact.inlined}".rstrip(".")
                fields.setdefault(name, replace(fact, numbers=(number, *fact.numbers), inlined=within))
        return fields

    return {owner: flat(owner) for owner in own}


def read_names(text: str) -> Names:
    """Return the words about Go names and enums by type and field."""
    names: Names = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            owner, name, element, *more = line.split("\t")
            whole, enum = (*more, "", "")[:2]
            words = [f"go={element}"] if element != "-" else []
            words += [f"goas={whole}"] if whole not in {"", "-"} else []
            names[owner, name] = words + ([f"enum={enum.replace(' ', '%20')}"] if enum else [])
    return names


def fact_of(facts: Facts, owner: str, name: str) -> Fact | None:
    """Return what is known of a field: its own row, or that of another version of the group, without numbers."""
    if owner in facts:
        return facts[owner].get(name)
    version, _, kind = owner.rpartition(".")
    group = version.partition("/")[0]
    for other in sorted(facts, reverse=True):
        if other.startswith(f"{group}/") and other.endswith(f".{kind}") and name in facts[other]:
            fact = facts[other][name]
            kind_here = fact.type.replace(f"{other.rpartition('.')[0]}.", f"{version}.")
            return replace(fact, type=kind_here, numbers=())
    return None


def guess(name: str, spelled: str, required: bool) -> str:
    """Return ``req``, ``ptr`` or "" for a field that the table does not know."""
    if required:
        return "req"
    if spelled.startswith(("[]", "map[]")):
        return ""
    return "" if name in {"metadata", "spec", "status", "apiVersion", "kind"} else "ptr"


# ----------------------------------------------------------------------------------------------- the definitions


def short_name(definition: str) -> str:
    """Return ``core/v1.Pod`` for ``io.k8s.api.core.v1.Pod``; leaves keep their bare name.

    >>> short_name("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
    'meta/v1.ObjectMeta'
    """
    if definition in LEAVES:
        return LEAVES[definition]
    group, version, kind = definition.split(".")[-3:]
    return f"{group}/{version}.{kind}"


def element(schema: Mapping[str, Any]) -> str:
    """Return the type of a schema that is neither a list nor a map, or one of those inside a map."""
    if "$ref" in schema:
        return short_name(schema["$ref"].removeprefix("#/$defs/"))
    named = schema.get("type")
    kind = next(each for each in named if each != "null") if isinstance(named, list) else named
    if kind == "array":
        return "strings"
    return FORMATS.get(schema.get("format", ""), BARE.get(str(kind), "RawExtension"))


def spell(schema: Mapping[str, Any]) -> str:
    """Return the shape and type of a field: ``[]core/v1.Container``."""
    if "items" in schema:
        return f"[]{element(schema['items'])}"
    if "additionalProperties" in schema:
        return f"map[]{element(schema['additionalProperties'])}"
    return element(schema)


def merge_words(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield how lists, maps and objects of a field merge."""
    kind = schema.get("x-kubernetes-list-type")
    if kind == "map":
        yield f"list=map:{','.join(schema['x-kubernetes-list-map-keys'])}"
    elif kind:
        yield f"list={kind}"
    if "x-kubernetes-map-type" in schema:
        yield f"map={schema['x-kubernetes-map-type']}"
    if "x-kubernetes-patch-strategy" in schema:
        key = schema.get("x-kubernetes-patch-merge-key")
        yield f"patch={schema['x-kubernetes-patch-strategy']}{f':{key}' if key else ''}"


def published_lines(owner: str, definition: Mapping[str, Any], facts: Facts, names: Names, minor: int) -> Iterator[str]:
    """Yield the field lines of one type in one version."""
    required = set(definition.get("required", ()))
    for name, schema in definition.get("properties", {}).items():
        spelled, fact = spell(schema), fact_of(facts, owner, name)
        words = [name, local(spelled, owner)]
        flag = guess(name, spelled, name in required)
        if fact is not None:
            if fact.spelled != spelled and fact.numbers:
                sys.stderr.write(f"note: {owner}.{name} is {spelled} in 1.{minor}, {fact.spelled} in the table\n")
            flag = fact.flag
            words += [f"#{'.'.join(map(str, fact.numbers))}"] if fact.numbers and fact.spelled == spelled else []
        if flag != "ptr" and serialised_when_zero(owner, name, spelled, minor):
            flag = "req"
        words += [flag] if flag else []
        words += ["req"] if flag == "ptr" and f"{owner}.{name}" in NULLED else []
        words += [f"in={fact.inlined}"] if fact is not None and fact.inlined else []
        words += ["required"] if name in required else []
        words += merge_words(schema)
        words += names.get((owner, name), ()) if element_is_scalar(spelled) else ()
        words += [f"default={fact.default}"] if fact is not None and fact.default and fact.spelled == spelled else []
        yield " ".join(words)


def element_is_scalar(spelled: str) -> bool:
    """Tell whether a spelled type still is what the table of Go names is about (an older version may have another type)."""
    return "." not in spelled or spelled.startswith(("[]", "map[]"))


def serialised_when_zero(owner: str, name: str, spelled: str, minor: int) -> bool:
    """Tell whether Go serialises a field that is no pointer whatever ``omitempty`` says: structs, and types that write themselves."""
    if minor >= OMITTED_ZERO.get((owner, name), LAST + 1):
        return False
    return spelled in {"Time", "MicroTime", "Quantity", "RawExtension"} or ("." in spelled and not spelled.startswith(("[]", "map[]")))


def unpublished_lines(owner: str, facts: Facts) -> Iterator[str]:
    """Yield the lines of a type that only the table knows."""
    kind = owner.rpartition(".")[2]
    yield f"! {kind}"
    if owner in UNPUBLISHED_KINDS:
        group, version = UNPUBLISHED_KINDS[owner]
        yield f"= {version} {kind} {group}"
        yield from ("apiVersion string", "kind string")
    for name, fact in sorted(facts[owner].items()):
        words = [name, local(fact.spelled, owner)]
        words += [f"#{'.'.join(map(str, fact.numbers))}"] if fact.numbers else []
        flag = "req" if fact.flag != "ptr" and serialised_when_zero(owner, name, fact.spelled, LAST) else fact.flag
        words += [flag] if flag else []
        yield " ".join(words)


def local(spelled: str, owner: str) -> str:
    """Return a spelled type with the group and version dropped where they are the owner's."""
    version = owner.rpartition(".")[0]
    return spelled.replace(f"{version}.", "")


def kind_lines(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield the kinds that a definition serves."""
    for kind in definition.get("x-kubernetes-group-version-kind", ()):
        yield f"= {kind['version']} {kind['kind']} {kind['group']}".rstrip()


def union_lines(definition: Mapping[str, Any]) -> Iterator[str]:
    """Yield the declared unions, in JSON as published."""
    for union in definition.get("x-kubernetes-unions", ()):
        yield f"| {orjson.dumps(union, option=orjson.OPT_SORT_KEYS).decode()}"


# ----------------------------------------------------------------------------------------------- putting together

Lines = dict[str, dict[str, list[int]]]
"""By type: its lines, and the minor versions that have each."""


def collect(definitions: Mapping[int, Mapping[str, Any]], facts: Facts, names: Names) -> Lines:
    """Return every line of every type with its versions."""
    found: Lines = {}
    for minor, named in sorted(definitions.items()):
        for definition, schema in named.items():
            if definition in LEAVES or definition in SKIPPED:
                continue
            owner = short_name(definition)
            lines = found.setdefault(owner, {})
            head = f"! {owner.rpartition('.')[2]}{' atomic' if schema.get('x-kubernetes-map-type') == 'atomic' else ''}"
            for line in (head, *kind_lines(schema), *union_lines(schema), *published_lines(owner, schema, facts, names, minor)):
                lines.setdefault(line, []).append(minor)
    pending = list(UNPUBLISHED_KINDS)
    while pending:
        owner = pending.pop()
        if owner not in found and owner in facts:
            found[owner] = {line: list(definitions) for line in unpublished_lines(owner, facts)}
            pending += [fact.type for fact in facts[owner].values()]
    return found


def ranged(minors: list[int], every: list[int]) -> Iterator[str]:
    """Yield the version words of a line: one for each unbroken run, "" where it is in all."""
    runs: list[list[int]] = []
    for minor in minors:
        if runs and minor == runs[-1][1] + 1:
            runs[-1][1] = minor
        else:
            runs.append([minor, minor])
    for first, last in runs:
        start, end = "" if first == every[0] else str(first), "" if last == every[-1] else str(last)
        yield "" if not start and not end else f" @{start}" if start == end else f" @{start}-{end}"


def versioned(line: str, word: str) -> str:
    """Return a line with its version word, which goes before a default."""
    head, default, tail = line.partition(" default=")
    return f"{head}{word}{default}{tail}"


def render(owner: str, lines: Mapping[str, list[int]], every: list[int]) -> str:
    """Return the block of one type."""

    def rank(line: str) -> tuple[int, str, int]:
        order = "!=|".find(line[0])
        order = order if order >= 0 else 3
        return order, line.partition(" ")[0] if order == 3 else line, lines[line][0]

    out: list[str] = []
    having = sorted({minor for minors in lines.values() for minor in minors})
    for line in sorted(lines, key=rank):
        if line.startswith("! "):
            out += [f"{line[2:]}{word}" for word in ranged(lines[line], every)]
        else:
            out += [versioned(f"  {line}", word) for word in ranged(lines[line], having)]
    return "\n".join(out)


def write(found: Lines, every: list[int], folder: Path) -> Iterable[Path]:
    """Write one file per group and version; files of vanished ones are removed."""
    folder.mkdir(exist_ok=True)
    blocks: dict[str, list[str]] = {}
    for owner in sorted(found):
        blocks.setdefault(owner.rpartition(".")[0].replace("/", "-"), []).append(render(owner, found[owner], every))
    for old in folder.glob("*.txt"):
        if old.stem not in blocks:
            old.unlink()
    for stem, each in blocks.items():
        path = folder / f"{stem}.txt"
        path.write_text("\n\n".join(each) + "\n", encoding="utf-8")
        yield path


def read_definitions(minor: int) -> Mapping[str, Any]:
    """Return the published definitions of one Kubernetes version."""
    path = f"kubernetes_validate/kubernetes-json-schema/v1.{minor}.0-local/_definitions.json"
    found = distribution("kubernetes-validate").locate_file(path)
    document: dict[str, Any] = orjson.loads(Path(str(found)).read_bytes())
    definitions: dict[str, Any] = document["$defs"]
    return definitions


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Boil Kubernetes' definitions down to the committed schema data.")
    parser.add_argument("--fields", type=Path, required=True, help="the table of Go struct fields (tab-separated values)")
    parser.add_argument("--first", type=int, default=FIRST, help="the oldest minor version")
    parser.add_argument("--last", type=int, default=LAST, help="the newest minor version")
    options = parser.parse_args()
    every = list(range(options.first, options.last + 1))
    facts = read_facts(options.fields.read_text(encoding="utf-8") + MORE.read_text(encoding="utf-8"))
    names = read_names(NAMES.read_text(encoding="utf-8"))
    found = collect({minor: read_definitions(minor) for minor in every}, facts, names)
    written = list(write(found, every, DATA))
    sys.stdout.write(f"{len(written)} files, {len(found)} types, {sum(path.stat().st_size for path in written)} bytes\n")


if __name__ == "__main__":
    main()
