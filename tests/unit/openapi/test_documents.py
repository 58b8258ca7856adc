"""The documents under /openapi describe exactly what is served, with references that lead somewhere."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha512
from typing import Any

import orjson
import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.openapi import OpenApiDocuments
from kubemini.machinery.openapi.operations import capitalized, joined
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.machinery.schema.structural import StructuralCodec
from kubemini.server.kinds import builtin_registry
from kubemini.server.kinds.custom import CustomStrategy, scale_of
from kubemini.server.registry import Kind, KindVersion, Registry, Subresource

TYPES = builtin_schemas("1.36")
GEAR: Tree = {
    "type": "object",
    "description": "A gear.",
    "required": ["spec"],
    "properties": {
        "metadata": {"type": "object"},
        "spec": {
            "type": "object",
            "required": ["size", "maybe"],
            "properties": {
                "size": {"type": "integer", "default": 3},
                "maybe": {"type": "string", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "either": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                "raw": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
            },
        },
    },
}


def gears(schema: Tree = GEAR, **more: Any) -> Kind:
    """Return a kind as a CustomResourceDefinition brings it, with a version that is not served."""
    codec = StructuralCodec(schema, group="example.com", version="v1", kind="Gear")
    return Kind(
        group="example.com",
        kind="Gear",
        plural="gears",
        versions=(KindVersion("v1", codec), KindVersion("v0", codec, served=False)),
        strategy=CustomStrategy(status=True, scale=scale_of(".spec.size", ".status.size")),
        subresources=(
            Subresource("status", "Gear", ("get", "patch", "update")),
            Subresource("scale", "Scale", ("get", "patch", "update"), "autoscaling", "v1"),
        ),
        custom=True,
        **more,
    )


def documents(*kinds: Kind) -> OpenApiDocuments:
    """Return the documents of some kinds, else of all kinds of a cluster with a metrics server."""
    return OpenApiDocuments(Registry(kinds) if kinds else builtin_registry("1.36", metrics_server=True), TYPES)


def document(path: str, *kinds: Kind) -> Tree:
    """Return the v3 document of a group and version."""
    found = documents(*kinds).group_version(path)
    assert found is not None
    tree: Tree = orjson.loads(found[0])
    return tree


def schema(tree: Tree, name: str) -> Tree:
    """Return a schema of a v3 document."""
    found: Tree = tree["components"]["schemas"][name]
    return found


def references(tree: Any) -> Iterator[str]:
    """Yield every ``$ref`` of a tree."""
    if isinstance(tree, dict):
        if isinstance(tree.get("$ref"), str):
            yield tree["$ref"]
        for each in tree.values():
            yield from references(each)
    elif isinstance(tree, list):
        for each in tree:
            yield from references(each)


def paths_of_kind(tree: Tree, kind: str) -> dict[str, list[str]]:
    """Return path → methods of the operations on a kind."""
    found: dict[str, list[str]] = {}
    for path, item in tree["paths"].items():
        methods = [
            method for method, each in item.items() if method != "parameters" and each.get("x-kubernetes-group-version-kind", {}).get("kind") == kind
        ]
        if methods:
            found[path] = sorted(methods)
    return found


def parameters(tree: Tree, path: str, method: str) -> set[str]:
    """Return the names of the parameters of an operation, its path's own ones included."""
    item = tree["paths"][path]
    return {each["name"] for each in (*item.get("parameters", ()), *item[method].get("parameters", ()))}


# ---------------------------------------------------------------------------------------------------------- the index


def test_index_names_every_group_and_version() -> None:
    """Each served group and version has an entry whose hash is that of its document."""
    all_documents = documents()
    body, tag = all_documents.index()
    entries = orjson.loads(body)["paths"]
    wanted = {
        f"apis/{group}/{version}" if group else f"api/{version}"
        for group, versions in builtin_registry("1.36", metrics_server=True).group_versions().items()
        for version in versions
    }
    assert set(entries) == wanted
    assert tag == f'"{sha512(body).hexdigest().upper()}"'
    for path, entry in entries.items():
        found = all_documents.group_version(path)
        assert found is not None
        assert entry == {"serverRelativeURL": f"/openapi/v3/{path}?hash={sha512(found[0]).hexdigest().upper()}"}
        assert found[1] == sha512(found[0]).hexdigest().upper()


@pytest.mark.parametrize("path", ["apis/example.com/v0", "apis/example.com/v2", "apis/example.org/v1", "api/v1", ""])
def test_what_is_not_served_has_no_document(path: str) -> None:
    """Unknown groups, unknown versions and versions that are not served have no document."""
    assert documents(gears()).group_version(path) is None
    assert "apis/example.com/v0" not in orjson.loads(documents(gears()).index()[0])["paths"]


def test_documents_follow_the_kinds() -> None:
    """The document stays the same object while its kinds do, and changes with one of them."""
    first, other = gears(), gears({**GEAR, "description": "Another gear."})
    before = documents(first).group_version("apis/example.com/v1")
    again = documents(first).group_version("apis/example.com/v1")
    after = documents(other).group_version("apis/example.com/v1")
    assert before is not None
    assert again is not None
    assert after is not None
    assert before[0] is again[0]
    assert before[1] != after[1]


def test_references_resolve() -> None:
    """Every reference of a document leads to a schema of the same document, and no schema is there for nothing."""
    for path in orjson.loads(documents().index()[0])["paths"]:
        tree = document(path)
        names = {each.removeprefix("#/components/schemas/") for each in references(tree)}
        assert names == set(tree["components"]["schemas"]), path


def test_operations_have_names_of_their_own() -> None:
    """No two operations share an id, as generators of clients demand, in Swagger across all groups and versions."""
    tree = orjson.loads(documents().swagger()[0])
    ids = [each["operationId"] for item in tree["paths"].values() for method, each in item.items() if method != "parameters"]
    assert len(ids) == len(set(ids)) > 500


# ---------------------------------------------------------------------------------------------------------- operations


def test_operations_of_a_namespaced_kind() -> None:
    """A namespaced kind has a list over all namespaces, a collection, objects, and its subresources."""
    tree = document("apis/batch/v1")
    assert paths_of_kind(tree, "Job") == {
        "/apis/batch/v1/jobs": ["get"],
        "/apis/batch/v1/namespaces/{namespace}/jobs": ["delete", "get", "post"],
        "/apis/batch/v1/namespaces/{namespace}/jobs/{name}": ["delete", "get", "patch", "put"],
        "/apis/batch/v1/namespaces/{namespace}/jobs/{name}/status": ["get", "patch", "put"],
    }
    patch = tree["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"]
    assert patch["operationId"] == "patchBatchV1NamespacedJob"
    assert patch["x-kubernetes-action"] == "patch"
    assert patch["x-kubernetes-group-version-kind"] == {"group": "batch", "kind": "Job", "version": "v1"}
    assert patch["tags"] == ["batch_v1"]


def test_operations_of_a_cluster_scoped_kind() -> None:
    """The paths of a cluster-scoped kind have no namespace, and objects of the core group are under /api."""
    tree = document("api/v1")
    assert paths_of_kind(tree, "Namespace") == {
        "/api/v1/namespaces": ["get", "post"],
        "/api/v1/namespaces/{name}": ["delete", "get", "patch", "put"],
        "/api/v1/namespaces/{name}/finalize": ["put"],
        "/api/v1/namespaces/{name}/status": ["get", "patch", "put"],
    }


def test_operations_of_a_review() -> None:
    """A kind that can only be created has one operation."""
    assert paths_of_kind(document("apis/authorization.k8s.io/v1"), "LocalSubjectAccessReview") == {
        "/apis/authorization.k8s.io/v1/namespaces/{namespace}/localsubjectaccessreviews": ["post"]
    }


@pytest.mark.parametrize("method", ["patch", "put"])
def test_writes_take_field_validation(method: str) -> None:
    """Writes take dryRun, fieldManager and fieldValidation, by which kubectl knows that the server validates; patches take force."""
    path = "/apis/example.com/v1/namespaces/{namespace}/gears/{name}"
    assert parameters(document("apis/example.com/v1", gears()), path, method) == {
        *("name", "namespace", "pretty", "dryRun", "fieldManager", "fieldValidation"),
        *(["force"] if method == "patch" else []),
    }


def test_reads_and_deletes_take_their_options() -> None:
    """Lists take selectors, limits and watch options; deletes take a grace period and a propagation policy, in the query or as a body."""
    tree = document("apis/example.com/v1", gears())
    listed = parameters(tree, "/apis/example.com/v1/gears", "get")
    assert {"watch", "labelSelector", "fieldSelector", "limit", "continue", "resourceVersion", "sendInitialEvents", "allowWatchBookmarks"} <= listed
    path = "/apis/example.com/v1/namespaces/{namespace}/gears/{name}"
    assert {"gracePeriodSeconds", "propagationPolicy", "dryRun"} <= parameters(tree, path, "delete")
    assert list(references(tree["paths"][path]["delete"]["requestBody"])) == [
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
    ]
    assert parameters(tree, path, "get") == {"name", "namespace", "pretty"}


def test_strategic_patches_are_for_built_in_kinds() -> None:
    """Custom kinds take no strategic merge patches, which is how kubectl learns to send merge patches."""
    built_in = document("apis/apps/v1")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]["requestBody"]["content"]
    custom = document("apis/example.com/v1", gears())["paths"]["/apis/example.com/v1/namespaces/{namespace}/gears/{name}"]["patch"]["requestBody"][
        "content"
    ]
    others = {"application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"}
    assert set(custom) == others
    assert set(built_in) == {*others, "application/strategic-merge-patch+json"}


def test_bodies_of_subresources() -> None:
    """A subresource with its own kind has its body and identity; others have those of the object."""
    tree = document("apis/example.com/v1", gears())
    scale = tree["paths"]["/apis/example.com/v1/namespaces/{namespace}/gears/{name}/scale"]["put"]
    assert scale["x-kubernetes-group-version-kind"] == {"group": "autoscaling", "kind": "Scale", "version": "v1"}
    assert set(references(scale)) == {"#/components/schemas/io.k8s.api.autoscaling.v1.Scale"}
    status = tree["paths"]["/apis/example.com/v1/namespaces/{namespace}/gears/{name}/status"]["put"]
    assert status["x-kubernetes-group-version-kind"] == {"group": "example.com", "kind": "Gear", "version": "v1"}
    assert set(references(status)) == {"#/components/schemas/com.example.v1.Gear"}
    eviction = document("api/v1")["paths"]["/api/v1/namespaces/{namespace}/pods/{name}/eviction"]["post"]
    assert set(references(eviction["requestBody"])) == {"#/components/schemas/io.k8s.api.policy.v1.Eviction"}
    assert eviction["operationId"] == "createCoreV1NamespacedPodEviction"


def test_connections_and_logs_are_texts() -> None:
    """What is no object answers with text: logs, and connections to a pod."""
    tree = document("api/v1")
    pod = "/api/v1/namespaces/{namespace}/pods/{name}"
    assert set(paths_of_kind(tree, "PodExecOptions")) == {f"{pod}/exec"}
    assert set(paths_of_kind(tree, "PodProxyOptions")) == {f"{pod}/proxy", f"{pod}/proxy/{{path}}"}
    assert {"command", "container", "stdin", "tty"} <= parameters(tree, f"{pod}/exec", "post")
    assert {"follow", "tailLines", "container"} <= parameters(tree, f"{pod}/log", "get")
    assert tree["paths"][f"{pod}/log"]["get"]["responses"]["200"]["content"]["text/plain"] == {"schema": {"type": "string"}}
    assert tree["paths"][f"{pod}/proxy/{{path}}"]["get"]["operationId"] == "connectCoreV1GetNamespacedPodProxyWithPath"


def test_names_without_punctuation() -> None:
    """Groups become words of operation ids and tags."""
    assert (joined("jobset.x-k8s.io"), capitalized("jobset.x-k8s.io"), capitalized("v1alpha2")) == ("jobsetXK8sIo", "JobsetXK8sIo", "V1alpha2")


# ---------------------------------------------------------------------------------------------------------- schemas


def test_schema_of_a_custom_kind() -> None:
    """The structural schema is published whole, with what every object has, and with its identity."""
    tree = document("apis/example.com/v1", gears())
    gear = schema(tree, "com.example.v1.Gear")
    assert gear["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Gear", "version": "v1"}]
    assert (gear["description"], gear["required"]) == ("A gear.", ["spec"])
    assert set(gear["properties"]) == {"apiVersion", "kind", "metadata", "spec"}
    assert gear["properties"]["metadata"]["allOf"] == [{"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}]
    spec = gear["properties"]["spec"]["properties"]
    assert spec["size"] == {"type": "integer", "default": 3}
    assert spec["port"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert set(spec["raw"]["properties"]) == {"apiVersion", "kind", "metadata"}
    assert spec["raw"]["required"] == ["apiVersion", "kind"]


def test_lists_of_a_custom_kind() -> None:
    """A list has items, which refer to the kind, and its own identity; the kind may name it."""
    tree = document("apis/example.com/v1", gears(list_kind="GearPile"))
    pile = schema(tree, "com.example.v1.GearPile")
    assert pile["properties"]["items"]["items"] == {"$ref": "#/components/schemas/com.example.v1.Gear"}
    assert pile["required"] == ["items"]
    assert pile["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "GearPile", "version": "v1"}]


def test_a_kind_without_a_schema_stays_open() -> None:
    """Where unknown fields are kept and nothing is described, nothing is said either, lest kubectl takes it for all there is."""
    open_schema: Tree = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    tree = document("apis/example.com/v1", gears(open_schema))
    assert "properties" not in schema(tree, "com.example.v1.Gear")


def test_embedded_types_are_published_in_place() -> None:
    """The pod template of our kinds stands in their schemas whole, as in a CustomResourceDefinition."""
    tree = document("apis/jobset.x-k8s.io/v1alpha2")
    job_set = schema(tree, "io.x-k8s.jobset.v1alpha2.JobSet")
    template = job_set["properties"]["spec"]["properties"]["replicatedJobs"]["items"]["properties"]["template"]
    pod = template["properties"]["spec"]["properties"]["template"]["properties"]["spec"]
    assert pod["required"] == ["containers"]
    assert pod["properties"]["containers"]["items"]["properties"]["ports"]["items"]["properties"]["containerPort"]["type"] == "integer"
    assert {each.rpartition("/")[2] for each in references(job_set)} == {"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    assert not any(name.startswith("io.k8s.api.core.") for name in tree["components"]["schemas"])


def test_patch_directives_of_built_in_types() -> None:
    """Lists say how strategic merge patches treat them, which kubectl needs for client-side apply."""
    pod = schema(document("api/v1"), "io.k8s.api.core.v1.PodSpec")
    containers = pod["properties"]["containers"]
    assert (containers["x-kubernetes-patch-strategy"], containers["x-kubernetes-patch-merge-key"]) == ("merge", "name")


# ---------------------------------------------------------------------------------------------------------- swagger


def test_swagger_covers_everything_with_references_that_resolve() -> None:
    """One document has the paths of all groups and versions, and each reference leads to a definition."""
    everything = documents()
    body, tag = everything.swagger()
    tree = orjson.loads(body)
    assert (tree["swagger"], tree["info"]["title"], tree["info"]["version"]) == ("2.0", "Kubernetes", "v1.36.0")
    assert tag == f'"{sha512(body).hexdigest().upper()}"'
    assert {each.removeprefix("#/definitions/") for each in references(tree)} <= set(tree["definitions"])
    for path in orjson.loads(everything.index()[0])["paths"]:
        assert set(document(path)["paths"]) <= set(tree["paths"])


def swagger(*kinds: Kind) -> Tree:
    """Return the Swagger document of some kinds."""
    tree: Tree = orjson.loads(documents(*kinds).swagger()[0])
    return tree


def test_swagger_says_less() -> None:
    """Swagger has no defaults, alternatives or nullable values; a nullable field is not required, and an open one is not described."""
    spec = swagger(gears())["definitions"]["com.example.v1.Gear"]["properties"]["spec"]
    assert spec["required"] == ["size"]
    assert spec["properties"] == {
        "size": {"type": "integer"},
        "maybe": {},
        "port": {"x-kubernetes-int-or-string": True},
        "either": {"type": "object"},
        "raw": {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True, "required": ["apiVersion", "kind"]},
    }
    open_schema: Tree = {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}}
    assert "properties" not in swagger(gears(open_schema))["definitions"]["com.example.v1.Gear"]


def test_swagger_leaves_of_built_in_types() -> None:
    """Quantities and numbers that may be strings are strings; references keep their descriptions beside them."""
    found = swagger(*(kind for kind in builtin_registry("1.36") if kind.group in {"", "apps"}))["definitions"]
    assert found["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"
    assert found["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]["format"] == "int-or-string"
    assert found["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"] == "#/definitions/io.k8s.api.core.v1.PodSpec"


def test_swagger_operations() -> None:
    """Bodies are parameters, and media types are listed beside them."""
    tree = swagger(gears())
    path = "/apis/example.com/v1/namespaces/{namespace}/gears/{name}"
    patch = tree["paths"][path]["patch"]
    assert patch["parameters"][0] == {
        "in": "body",
        "name": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"},
    }
    assert patch["consumes"] == ["application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json"]
    assert patch["produces"] == ["application/json", "application/yaml"]
    assert patch["responses"]["200"]["schema"] == {"$ref": "#/definitions/com.example.v1.Gear"}
    assert patch["x-kubernetes-group-version-kind"] == {"group": "example.com", "kind": "Gear", "version": "v1"}
    assert {"name": "force", "in": "query", "type": "boolean", "uniqueItems": True}.items() <= patch["parameters"][-1].items()
    delete = tree["paths"][path]["delete"]
    assert "required" not in delete["parameters"][0]
