"""What the small groups refuse, and what of an object stays."""

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.server.kinds.catalogue import catalogue, gated_kinds
from kubemini.server.registry import Registry
from tests.unit.core.conftest import SCHEMAS

RULE: Tree = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
HOOK: Tree = {
    "name": "a.b.c",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://localhost/x"},
    "rules": [RULE],
}
RBAC = "rbac.authorization.k8s.io"
ROLE_REF: Tree = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"}
POLICY: Tree = {
    "failurePolicy": "Fail",
    "matchConstraints": {"resourceRules": [RULE]},
    "validations": [{"expression": "true"}],
}
BACKEND: Tree = {"service": {"name": "s", "port": {"number": 80}}}
REQUEST: Tree = {"name": "r", "exactly": {"deviceClassName": "gpu"}}


def validations(*rules: Tree, **more: Any) -> Tree:
    """Return a policy of these rules."""
    return {"spec": {**POLICY, "validations": list(rules), **more}}


def mutations(*patches: Tree) -> Tree:
    """Return a policy of these mutations."""
    return {
        "spec": {**{key: POLICY[key] for key in ("failurePolicy", "matchConstraints")}, "mutations": list(patches), "reinvocationPolicy": "Never"}
    }


def hook(**changes: Any) -> Tree:
    """Return webhooks of one hook that differs from a good one."""
    return {"webhooks": [{**HOOK, **changes}]}


def rule(**changes: Any) -> Tree:
    """Return webhooks of one hook whose rule differs from a good one."""
    return hook(rules=[{**RULE, **changes}])


def claim(*requests: Tree) -> Tree:
    """Return a claim of devices."""
    return {"spec": {"devices": {"requests": list(requests)}}}


GOOD: list[tuple[str, Tree]] = [
    ("Lease", {"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15}}),
    ("PriorityClass", {"value": -5}),
    ("RuntimeClass", {"handler": "runc", "overhead": {"podFixed": {"cpu": "100m"}}}),
    ("Ingress", {"spec": {"defaultBackend": BACKEND}}),
    ("IngressClass", {"spec": {"controller": "example.com/controller"}}),
    ("NetworkPolicy", {"spec": {"podSelector": {}, "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80, "endPort": 90}]}]}}),
    ("StorageClass", {"provisioner": "example.com/disk"}),
    ("CSINode", {"spec": {"drivers": [{"name": "a.b", "nodeID": "n"}]}}),
    ("Role", {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
    ("ClusterRole", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]}),
    ("RoleBinding", {"roleRef": ROLE_REF, "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "u"}]}),
    ("ClusterRoleBinding", {"roleRef": ROLE_REF, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}),
    ("ValidatingWebhookConfiguration", hook()),
    ("MutatingWebhookConfiguration", hook()),
    ("ValidatingAdmissionPolicy", {"spec": POLICY}),
    ("ValidatingAdmissionPolicyBinding", {"spec": {"policyName": "p", "validationActions": ["Deny", "Audit"]}}),
    ("DeviceClass", {"spec": {"selectors": [{"cel": {"expression": "true"}}]}}),
    ("ResourceClaim", claim(REQUEST)),
    ("ResourceClaimTemplate", {"spec": claim(REQUEST)}),
    ("ResourceSlice", {"spec": {"driver": "a.b", "nodeName": "n", "pool": {"name": "p", "resourceSliceCount": 1, "generation": 1}}}),
    ("CertificateSigningRequest", {"spec": {"request": "YQ==", "usages": ["digital signature"], "signerName": "a.b/c"}}),
]


@pytest.mark.parametrize("kind, fields", GOOD)
def test_ordinary_objects_are_accepted(desk: Any, kind: str, fields: Tree) -> None:
    """What the tests of refusals start from is good, is stored, and can be read back and replaced by itself."""
    desk.create(kind, **fields)
    assert desk.patch(kind, "x", {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}
    assert desk.get(kind, "x")["kind"] == kind


BAD: list[tuple[str, Tree, list[str]]] = [
    ("Lease", {"spec": {"leaseDurationSeconds": 0}}, ["spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"]),
    ("Lease", {"spec": {"leaseTransitions": -1}}, ["spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"]),
    (
        "PriorityClass",
        {"name": "system-mine", "value": 1},
        ["metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only"],
    ),
    ("PriorityClass", {"value": 1_000_000_001}, ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"]),
    (
        "PriorityClass",
        {"value": 1, "preemptionPolicy": "Sometimes"},
        ['preemptionPolicy: Unsupported value: "Sometimes": supported values: "PreemptLowerPriority", "Never"'],
    ),
    ("RuntimeClass", {"handler": ""}, ["handler: Required value"]),
    ("Ingress", {"spec": {"rules": [{"http": {"paths": []}}]}}, ["spec.rules[0].http.paths: Required value"]),
    (
        "Ingress",
        {"spec": {"rules": [{"http": {"paths": [{"path": "x", "pathType": "Prefix", "backend": BACKEND}]}}]}},
        ['spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path'],
    ),
    (
        "Ingress",
        {"spec": {"rules": [{"http": {"paths": [{"path": "/", "backend": {}}]}}]}},
        [
            "spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified",
        ],
    ),
    (
        "Ingress",
        {"spec": {"defaultBackend": {"service": {"name": "s", "port": {"name": "a", "number": 1}}}}},
        ['spec.defaultBackend: Invalid value: "": cannot set both port name & port number'],
    ),
    ("NetworkPolicy", {"spec": {"podSelector": {}, "ingress": [{"from": [{}]}]}}, ["spec.ingress[0].from[0]: Required value: must specify a peer"]),
    (
        "NetworkPolicy",
        {"spec": {"podSelector": {}, "egress": [{"to": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]}]}},
        ["spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"],
    ),
    (
        "NetworkPolicy",
        {"spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 90, "endPort": 80}]}]}},
        ["spec.ingress[0].ports[0].endPort: Invalid value: 90: must be greater than or equal to `port`"],
    ),
    (
        "NetworkPolicy",
        {"spec": {"podSelector": {}, "policyTypes": ["Sideways"]}},
        ['spec.policyTypes[0]: Unsupported value: "Sideways": supported values: "Ingress", "Egress"'],
    ),
    (
        "StorageClass",
        {"provisioner": "p", "reclaimPolicy": "Recycle"},
        ['reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"'],
    ),
    ("CSINode", {"spec": {"drivers": [{"name": "a.b", "nodeID": ""}]}}, ["spec.drivers[0].nodeID: Required value"]),
    (
        "Role",
        {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
        ['rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply to non-resource URLs'],
    ),
    (
        "ClusterRole",
        {"rules": [{"verbs": []}]},
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ],
    ),
    (
        "ClusterRole",
        {"aggregationRule": {}},
        ["aggregationRule.clusterRoleSelectors: Required value: at least one clusterRoleSelector required if aggregationRule is non-nil"],
    ),
    (
        "RoleBinding",
        {"roleRef": {"apiGroup": RBAC, "kind": "Other", "name": ""}},
        ['roleRef.kind: Unsupported value: "Other": supported values: "ClusterRole", "Role"', "roleRef.name: Required value"],
    ),
    (
        "ClusterRoleBinding",
        {"roleRef": ROLE_REF, "subjects": [{"kind": "ServiceAccount", "name": "s"}]},
        ["subjects[0].namespace: Required value"],
    ),
    (
        "RoleBinding",
        {"roleRef": ROLE_REF, "subjects": [{"kind": "Robot", "name": "s"}]},
        ['subjects[0].kind: Unsupported value: "Robot": supported values: "Group", "ServiceAccount", "User"'],
    ),
    (
        "ValidatingWebhookConfiguration",
        hook(name="short"),
        ['webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots'],
    ),
    (
        "ValidatingWebhookConfiguration",
        hook(sideEffects="Some"),
        ['webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"'],
    ),
    (
        "ValidatingWebhookConfiguration",
        hook(timeoutSeconds=31),
        ["webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds"],
    ),
    (
        "ValidatingWebhookConfiguration",
        hook(clientConfig={}),
        ["webhooks[0].clientConfig: Required value: exactly one of url or service is required"],
    ),
    (
        "ValidatingWebhookConfiguration",
        hook(clientConfig={"url": "http://x/"}),
        ["webhooks[0].clientConfig.url: Invalid value: \"http://x/\": 'https' is the only allowed URL scheme; desired format: https://host[/path]"],
    ),
    (
        "ValidatingWebhookConfiguration",
        hook(admissionReviewVersions=["v2"]),
        ['webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1'],
    ),
    ("MutatingWebhookConfiguration", {"webhooks": [HOOK, HOOK]}, ['webhooks[1].name: Duplicate value: "a.b.c"']),
    (
        "ValidatingWebhookConfiguration",
        rule(operations=["*", "CREATE"]),
        ['webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not specify other operations'],
    ),
    ("ValidatingWebhookConfiguration", rule(resources=[]), ["webhooks[0].rules[0].resources: Required value"]),
    (
        "ValidatingWebhookConfiguration",
        rule(operations=["READ"]),
        ['webhooks[0].rules[0].operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE"'],
    ),
    ("ValidatingAdmissionPolicy", {"spec": {**POLICY, "matchConstraints": None}}, ["spec.matchConstraints: Required value"]),
    (
        "ValidatingAdmissionPolicy",
        {"spec": {**POLICY, "validations": []}},
        [
            f"spec.{key}: Required value: validations or auditAnnotations must contain at least one item"
            for key in ("validations", "auditAnnotations")
        ],
    ),
    (
        "ValidatingAdmissionPolicy",
        {"spec": {**POLICY, "validations": [{"expression": " ", "message": "a\nb"}]}},
        [
            "spec.validations[0].expression: Required value: expression is not specified",
            'spec.validations[0].message: Invalid value: "a\\nb": message must not contain line breaks',
        ],
    ),
    (
        "ValidatingAdmissionPolicy",
        validations({"expression": "object.x"}),
        ['spec.validations[0].expression: Invalid value: "object.x": must evaluate to bool but got dyn'],
    ),
    (
        "ValidatingAdmissionPolicy",
        validations({"expression": "true", "messageExpression": "authorizer.path('/x').check('get').reason()"}),
        [
            (
                "spec.validations[0].messageExpression: Invalid value: \"authorizer.path('/x').check('get').reason()\": compilation failed: "
                "ERROR: <input>:1:1: undeclared reference to 'authorizer' (in container '')\n | authorizer.path('/x').check('get').reason()\n | ^"
            )
        ],
    ),
    (
        "ValidatingAdmissionPolicy",
        validations({"expression": "params != null"}),
        [
            (
                'spec.validations[0].expression: Invalid value: "params != null": compilation failed: '
                "ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params != null\n | ^"
            )
        ],
    ),
    (
        "ValidatingAdmissionPolicy",
        validations({"expression": "request.verb == 'x'"}),
        [
            (
                "spec.validations[0].expression: Invalid value: \"request.verb == 'x'\": compilation failed: "
                "ERROR: <input>:1:8: undefined field 'verb'\n | request.verb == 'x'\n | .......^"
            )
        ],
    ),
    (
        "ValidatingAdmissionPolicy",
        validations(
            {"expression": "variables.a > 1 && variables.b"}, variables=[{"name": "a", "expression": "1"}, {"name": "for", "expression": " "}]
        ),
        [
            'spec.variables[1].name: Invalid value: "for": name is not a valid CEL identifier',
            "spec.variables[1].expression: Required value: expression is not specified",
            (
                'spec.validations[0].expression: Invalid value: "variables.a > 1 && variables.b": compilation failed: '
                "ERROR: <input>:1:29: undefined field 'b'\n | variables.a > 1 && variables.b\n | ............................^"
            ),
        ],
    ),
    (
        "ValidatingAdmissionPolicy",
        {"spec": {**POLICY, "matchConditions": [{"name": "a", "expression": " 1 "}, {"name": "a", "expression": "true"}]}},
        [
            'spec.matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int',
            'spec.matchConditions[1].name: Duplicate value: "a"',
        ],
    ),
    (
        "ValidatingAdmissionPolicy",
        {"spec": {**POLICY, "paramKind": {"apiVersion": "a/b/c", "kind": "x_"}, "auditAnnotations": [{"key": "k", "valueExpression": "1"}]}},
        [
            'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
            (
                'spec.paramKind.kind: Invalid value: "x_": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric '
                "characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
                "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            ),
            'spec.auditAnnotations[0].valueExpression: Invalid value: "1": must evaluate to one of [string null_type] but got int',
        ],
    ),
    ("MutatingAdmissionPolicy", mutations(), ["spec.mutations: Required value: mutations must contain at least one item"]),
    (
        "MutatingAdmissionPolicy",
        mutations({}, {"patchType": "Merge"}, {"patchType": "JSONPatch", "applyConfiguration": {"expression": "Object{}"}}),
        [
            "spec.mutations[0].patchType: Required value",
            'spec.mutations[1].patchType: Unsupported value: "Merge": supported values: "ApplyConfiguration", "JSONPatch"',
            'spec.mutations[2].applyConfiguration: Invalid value: "{applyConfiguration}": must not be specified when patchType is JSONPatch',
            "spec.mutations[2].jsonPatch: Required value: must be specified when patchType is JSONPatch",
        ],
    ),
    (
        "MutatingAdmissionPolicy",
        mutations(
            {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object.spec{}"}},
            {"patchType": "JSONPatch", "jsonPatch": {"expression": "[JSONPatch{op: 1}]"}},
        ),
        [
            'spec.mutations[0].applyConfiguration.expression: Invalid value: "Object.spec{}": must evaluate to Object but got Object.spec',
            (
                'spec.mutations[1].jsonPatch.expression: Invalid value: "[JSONPatch{op: 1}]": compilation failed: '
                "ERROR: <input>:1:16: expected type of field 'op' is 'string' but provided type is 'int'\n | [JSONPatch{op: 1}]\n | ...............^"
            ),
        ],
    ),
    (
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "validationActions": ["Deny", "Deny"]}},
        ['spec.validationActions[1]: Duplicate value: "Deny"'],
    ),
    (
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "validationActions": []}},
        ["spec.validationActions: Required value: at least one validation action is required"],
    ),
    (
        "ValidatingAdmissionPolicyBinding",
        {"spec": {"policyName": "p", "validationActions": ["Deny"], "paramRef": {"name": "a"}}},
        ["spec.paramRef.parameterNotFoundAction: Required value"],
    ),
    ("ResourceClaim", claim({"name": "r"}), ["spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required"]),
    ("ResourceClaim", claim(REQUEST, REQUEST), ['spec.devices.requests[1].name: Duplicate value: "r"']),
    (
        "ResourceClaim",
        claim({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All", "count": 2}}),
        ["spec.devices.requests[0].exactly.count: Invalid value: 2: must not be specified when allocationMode is 'All'"],
    ),
    (
        "ResourceSlice",
        {"spec": {"driver": "a.b", "pool": {"name": "p", "resourceSliceCount": 1}}},
        ["spec: Required value: exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"],
    ),
    (
        "CertificateSigningRequest",
        {"spec": {"request": "YQ==", "usages": ["any", "any"], "signerName": "plain"}},
        [
            'spec.usages[1]: Duplicate value: "any"',
            "spec.signerName: Invalid value: \"plain\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ],
    ),
]


@pytest.mark.parametrize("kind, fields, causes", BAD)
def test_wrong_objects_are_refused_with_their_causes(desk: Any, kind: str, fields: Tree, causes: list[str]) -> None:
    """Each broken rule is one cause with upstream's field and text."""
    assert desk.causes(kind, **fields) == causes


CHANGES: list[tuple[str, Tree, list[str]]] = [
    ("PriorityClass", {"value": 3}, ["value: Forbidden: may not be changed in an update."]),
    ("RuntimeClass", {"handler": "other"}, ['handler: Invalid value: "other": field is immutable']),
    ("StorageClass", {"provisioner": "other"}, ["provisioner: Forbidden: updates to provisioner are forbidden."]),
    ("IngressClass", {"spec": {"controller": "b.c/d"}}, ['spec.controller: Invalid value: "b.c/d": field is immutable']),
    (
        "RoleBinding",
        {"roleRef": {"name": "edit"}},
        [f'roleRef: Invalid value: {{"APIGroup":"{RBAC}","Kind":"ClusterRole","Name":"edit"}}: cannot change roleRef'],
    ),
    ("ResourceSlice", {"spec": {"driver": "other.driver"}}, ['spec.driver: Invalid value: "other.driver": field is immutable']),
]


@pytest.mark.parametrize("kind, body, causes", CHANGES)
def test_what_an_object_stands_for_stays(desk: Any, kind: str, body: Tree, causes: list[str]) -> None:
    """Changes of identity are refused with upstream's texts."""
    desk.create(kind, **dict(GOOD)[kind])
    assert desk.unpatched(kind, "x", body) == causes


def test_the_server_says_who_signs_a_request(desk: Any) -> None:
    """Whatever the request claims, its author is who sent it; and its spec stays."""
    fields = dict(GOOD)["CertificateSigningRequest"]
    request = desk.create("CertificateSigningRequest", spec={**fields["spec"], "username": "root", "groups": ["wheel"], "uid": "1"})
    assert (request["spec"]["username"], request["spec"]["groups"]) == ("system:admin", ["system:masters", "system:authenticated"])
    assert "uid" not in request["spec"]
    assert desk.patch("CertificateSigningRequest", "x", {"spec": {"signerName": "other/signer"}})["spec"] == request["spec"]


APPROVED: Tree = {"type": "Approved", "status": "True", "reason": "Checked"}


def signing(desk: Any) -> None:
    """Create a request."""
    desk.create("CertificateSigningRequest", **dict(GOOD)["CertificateSigningRequest"])


def test_a_request_is_approved_through_its_own_door(desk: Any) -> None:
    """Conditions get their times; nothing else changes there, and a status written elsewhere approves nothing."""
    signing(desk)
    kind = "CertificateSigningRequest"
    assert "conditions" not in desk.patch(kind, "x", {"status": {"conditions": [APPROVED]}}, subresource="status")["status"]
    body = {"status": {"conditions": [APPROVED], "certificate": "YQ=="}, "spec": {"signerName": "other/signer"}}
    answer = desk.patch(kind, "x", body, subresource="approval")
    now = desk.env.stamp()
    assert answer["status"] == {"conditions": [{**APPROVED, "lastUpdateTime": now, "lastTransitionTime": now}]}
    assert answer["spec"]["signerName"] == "a.b/c"
    issued = desk.patch(kind, "x", {"status": {"certificate": "YQ=="}}, subresource="status")["status"]
    assert (issued["certificate"], issued["conditions"]) == ("YQ==", answer["status"]["conditions"])


def test_what_was_said_of_a_request_stays_said(desk: Any) -> None:
    """Yes and no exclude each other, cannot be taken back, and are never "False"."""
    signing(desk)
    kind, denied = "CertificateSigningRequest", {**APPROVED, "type": "Denied"}
    assert desk.unpatched(kind, "x", {"status": {"conditions": [APPROVED, denied]}}, subresource="approval") == [
        'status.conditions[1].type: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    ]
    assert desk.unpatched(kind, "x", {"status": {"conditions": [{**APPROVED, "status": "False"}]}}, subresource="approval")[0].startswith(
        'status.conditions[0].status: Invalid value: "False"'
    )
    desk.patch(kind, "x", {"status": {"conditions": [APPROVED]}}, subresource="approval")
    assert desk.unpatched(kind, "x", {"status": {"conditions": []}}, subresource="approval") == [
        'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'
    ]


def test_a_change_of_the_spec_is_a_generation(desk: Any) -> None:
    """Labels and status are none."""
    desk.create("Ingress", **dict(GOOD)["Ingress"])
    assert desk.patch("Ingress", "x", {"metadata": {"labels": {"a": "b"}}})["metadata"]["generation"] == 1
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}}
    assert desk.patch("Ingress", "x", status, subresource="status")["metadata"]["generation"] == 1
    assert desk.patch("Ingress", "x", {"spec": {"ingressClassName": "c"}})["metadata"]["generation"] == 2


def test_a_new_ingress_has_no_status_of_its_own(desk: Any) -> None:
    """What a client writes there on creation is dropped."""
    made = desk.create("Ingress", **dict(GOOD)["Ingress"], status={"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})
    assert made["status"] == {"loadBalancer": {}}


def test_names_follow_the_kind(desk: Any) -> None:
    """Roles may be named like paths are not: colons are fine there, and nowhere else."""
    assert desk.create("ClusterRole", name="system:my-role", rules=[])["metadata"]["name"] == "system:my-role"
    assert desk.causes("PriorityClass", name="a:b", value=1)[0].startswith('metadata.name: Invalid value: "a:b": a lowercase RFC 1123 subdomain')


@pytest.fixture
def gangs(desk: Any) -> Any:
    """Return a server that serves the alpha kinds of gang scheduling."""
    kinds = gated_kinds(SCHEMAS.codec)["GenericWorkload"]
    desk.registry = desk.api.registry = Registry([*desk.api.registry, *kinds])
    return desk


GROUP = "scheduling.k8s.io"
GANG = {"gang": {"minCount": 3}}
REFERENCE = {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}}


def test_a_pod_group_stays_as_it_is(gangs: Any) -> None:
    """The spec is fixed, and has no generations; a refusal does not show what was wanted."""
    made = gangs.create("PodGroup", group=GROUP, spec={"schedulingPolicy": GANG})
    assert "generation" not in made["metadata"]
    assert made["spec"] == {"podGroupTemplateRef": None, "schedulingPolicy": GANG, "disruptionMode": "Pod"}
    for field, value in {"schedulingPolicy": {"gang": {"minCount": 4}}, "podGroupTemplateRef": REFERENCE, "disruptionMode": "PodGroup"}.items():
        assert gangs.unpatched("PodGroup", "x", {"spec": {field: value}}) == [f"spec.{field}: Invalid value: null: field is immutable"]


@pytest.mark.parametrize(
    "spec, problem",
    [
        ({"schedulingPolicy": {}}, 'schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'),
        (
            {"schedulingPolicy": {"basic": {}, **GANG}},
            'schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`',
        ),
        ({"schedulingPolicy": {"gang": {}}}, "schedulingPolicy.gang.minCount: Required value"),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}}, "schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1"),
        ({"podGroupTemplateRef": {}}, 'podGroupTemplateRef: Invalid value: "": must specify one of: `workload`'),
        (
            {"podGroupTemplateRef": {"workload": {"podGroupTemplateName": "t", "workloadName": ""}}},
            "podGroupTemplateRef.workload.workloadName: Required value",
        ),
        (
            {"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
            "schedulingConstraints.topology: Too many: 2: must have at most 1 item",
        ),
        ({"schedulingConstraints": {"topology": [{"key": ""}]}}, "schedulingConstraints.topology[0].key: Required value"),
        (
            {"resourceClaims": [{"name": "c"}]},
            'resourceClaims[0]: Invalid value: "": must specify one of: `resourceClaimName`, `resourceClaimTemplateName`',
        ),
        (
            {"resourceClaims": [{"name": "c", "resourceClaimName": "x"}, {"resourceClaimName": "y", "name": "c"}]},
            'resourceClaims[1]: Duplicate value: {"name":"c","resourceClaimName":"y"}',
        ),
        ({"disruptionMode": "All"}, 'disruptionMode: Unsupported value: "All": supported values: "Pod", "PodGroup"'),
        ({"priority": 1_000_000_001}, "priority: Invalid value: 1000000001: must be less than or equal to 1000000000"),
    ],
)
def test_what_is_wrong_with_a_pod_group(gangs: Any, spec: Tree, problem: str) -> None:
    """The declarative rules of a group hold for it and for the templates of workloads."""
    assert gangs.causes("PodGroup", group=GROUP, name="y", spec={"schedulingPolicy": GANG, **spec}) == [f"spec.{problem}"]
    if "podGroupTemplateRef" not in spec:
        template = {"name": "t", "schedulingPolicy": GANG, **spec}
        assert gangs.causes("Workload", group=GROUP, name="y", spec={"podGroupTemplates": [template]}) == [f"spec.podGroupTemplates[0].{problem}"]


def test_a_workload_names_its_groups(gangs: Any) -> None:
    """Templates have distinct names, and stay; so does the controller, which has a kind and a name."""
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}
    gangs.create("Workload", group=GROUP, spec={"podGroupTemplates": [template]})

    def causes(**spec: Any) -> list[str]:
        found: list[str] = gangs.causes("Workload", group=GROUP, name="y", spec={"podGroupTemplates": [template], **spec})
        return found

    assert causes(podGroupTemplates=[template, {"schedulingPolicy": template["schedulingPolicy"], "name": "workers"}]) == [
        'spec.podGroupTemplates[1]: Duplicate value: {"name":"workers","schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":null}'
    ]
    assert causes(podGroupTemplates=[{**template, "name": f"t{index}"} for index in range(9)]) == [
        "spec.podGroupTemplates: Too many: 9: must have at most 8 items"
    ]
    assert causes(controllerRef={"kind": "JobSet", "name": "a/b"}) == ["spec.controllerRef.name: Invalid value: \"a/b\": may not contain '/'"]
    assert causes(controllerRef={"kind": "", "name": "js"}) == ["spec.controllerRef.kind: Required value"]
    for field, value in {"podGroupTemplates": [], "controllerRef": {"kind": "JobSet", "name": "js"}}.items():
        assert gangs.unpatched("Workload", "x", {"spec": {field: value}}) == [f"spec.{field}: Invalid value: null: field is immutable"]


def test_every_kind_has_its_own_strategy() -> None:
    """Strategies keep memos; a fresh server starts with fresh ones."""
    one, other = catalogue(SCHEMAS.codec), catalogue(SCHEMAS.codec)
    assert [each.kind for each in one] == [each.kind for each in other]
    assert all(mine.strategy is not yours.strategy for mine, yours in zip(one, other, strict=True))
