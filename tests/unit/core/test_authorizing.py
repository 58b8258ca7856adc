"""RBAC as a decision, the reviews that ask for it, and the roles that every cluster has."""

import asyncio
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Invalid
from kubemini.server.kinds.groups import access
from kubemini.server.kinds.groups.authorizing import Attributes, Decision, allows, decide, refusal
from kubemini.server.kinds.groups.default_roles import default_cluster_role_bindings, default_cluster_roles
from kubemini.server.kinds.groups.reviews import TokenReviews
from kubemini.server.options import ADMIN, Caller, WriteOptions

RBAC = "rbac.authorization.k8s.io"
GET_PODS = Attributes("get", resource="pods", namespace="default")


def bind(desk: Any, subject: Tree, *, cluster: bool = False, rule: Tree | None = None, name: str = "b") -> None:
    """Let somebody get pods."""
    kind = "ClusterRole" if cluster else "Role"
    desk.create(kind, name=name, rules=[rule or {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}])
    reference = {"apiGroup": RBAC, "kind": kind, "name": name}
    full = {"apiGroup": RBAC, **subject} if subject["kind"] != "ServiceAccount" else subject
    desk.create(f"{kind}Binding", name=name, roleRef=reference, subjects=[full])


def asked(desk: Any, wanted: Attributes = GET_PODS, user: str = "u", groups: tuple[str, ...] = ()) -> Decision:
    """Return the decision."""
    return decide(desk.api.reader, user, groups, wanted)


def test_nobody_may_do_anything_by_default(desk: Any) -> None:
    """But the group of masters may do everything."""
    assert asked(desk) == Decision(allowed=False)
    assert asked(desk, groups=("system:masters",)) == Decision(allowed=True)


SUBJECTS: list[tuple[Tree, str, tuple[str, ...], str]] = [
    ({"kind": "User", "name": "u"}, "u", (), 'User "u"'),
    ({"kind": "Group", "name": "g"}, "u", ("f", "g"), 'Group "g"'),
    (
        {"kind": "ServiceAccount", "name": "s", "namespace": "default"},
        "system:serviceaccount:default:s",
        (),
        'ServiceAccount "s/default"',
    ),
]


@pytest.mark.parametrize("subject, user, groups, shown", SUBJECTS)
@pytest.mark.parametrize("cluster", [False, True])
def test_bindings_allow_and_the_reason_names_them(desk: Any, subject: Tree, user: str, groups: tuple[str, ...], shown: str, cluster: bool) -> None:
    """Users, groups and service accounts, in a namespace or everywhere."""
    bind(desk, subject, cluster=cluster)
    by = 'ClusterRoleBinding "b" of ClusterRole "b"' if cluster else 'RoleBinding "b/default" of Role "b"'
    assert asked(desk, user=user, groups=groups) == Decision(allowed=True, reason=f"RBAC: allowed by {by} to {shown}")
    assert not asked(desk, user="other").allowed
    elsewhere = Attributes("get", resource="pods", namespace="kube-system")
    assert asked(desk, elsewhere, user=user, groups=groups).allowed == cluster


POD: dict[str, str] = {"group": "", "resource": "pods"}
RULES: list[tuple[Tree, Attributes, bool]] = [
    ({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, Attributes("get", "apps", "deployments", "scale"), True),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Attributes("list", **POD), False),
    ({"verbs": ["get"], "apiGroups": ["apps"], "resources": ["pods"]}, Attributes("get", **POD), False),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}, Attributes("get", subresource="log", **POD), False),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}, Attributes("get", subresource="log", **POD), True),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, Attributes("get", subresource="log", **POD), True),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}, Attributes("get", **POD), False),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}, Attributes("get", name="a", **POD), True),
    ({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}, Attributes("get", name="b", **POD), False),
    ({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}, Attributes("get", path="/metrics"), True),
    ({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}, Attributes("get", path="/healthz/etcd"), True),
    ({"verbs": ["get"], "nonResourceURLs": ["/healthz/*"]}, Attributes("get", path="/livez"), False),
    ({"verbs": ["get"], "nonResourceURLs": ["*"]}, Attributes("get", path="/anything"), True),
    ({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}, Attributes("get", path="/metrics"), False),
]


@pytest.mark.parametrize("rule, wanted, allowed", RULES)
def test_rules_match_verbs_resources_names_and_paths(rule: Tree, wanted: Attributes, allowed: bool) -> None:
    """Stars match anything; a subresource has to be named; names narrow."""
    assert allows(rule, wanted) == allowed


def test_a_refusal_says_who_cannot_do_what() -> None:
    """The text that kubectl shows."""
    assert refusal("u", GET_PODS) == 'User "u" cannot get resource "pods" in API group "" in the namespace "default"'
    assert refusal("u", Attributes("list", "apps", "deployments", "scale")) == (
        'User "u" cannot list resource "deployments/scale" in API group "apps" at the cluster scope'
    )
    assert refusal("u", Attributes("get", path="/metrics")) == 'User "u" cannot get path "/metrics"'


# ------------------------------------------------------------------------------------------------------ reviews


def review(desk: Any, kind: str, spec: Tree, caller: Caller = ADMIN) -> Tree:
    """Post a review and return its status."""
    served = desk.served(kind)
    where = "default" if served.kind.namespaced else ""
    body = {"apiVersion": served.api_version, "kind": kind, "metadata": {"namespace": where} if where else {}, "spec": spec}
    status: Tree = asyncio.run(desk.api.create(served, where, body, WriteOptions(caller=caller, track=False))).obj["status"]
    return status


ATTRIBUTES: Tree = {"verb": "get", "resource": "pods", "namespace": "default"}


def test_access_reviews_answer_for_others_and_for_oneself(desk: Any) -> None:
    """With the reason of the binding."""
    bind(desk, {"kind": "User", "name": "u"})
    reason = 'RBAC: allowed by RoleBinding "b/default" of Role "b" to User "u"'
    for kind in ("SubjectAccessReview", "LocalSubjectAccessReview"):
        assert review(desk, kind, {"user": "u", "resourceAttributes": ATTRIBUTES}) == {"allowed": True, "reason": reason}
        assert review(desk, kind, {"user": "w", "resourceAttributes": ATTRIBUTES}) == {"allowed": False}
    assert review(desk, "SelfSubjectAccessReview", {"resourceAttributes": ATTRIBUTES}) == {"allowed": True}
    assert review(desk, "SelfSubjectAccessReview", {"resourceAttributes": ATTRIBUTES}, Caller("w", ())) == {"allowed": False}


def test_rules_reviews_list_what_holds(desk: Any) -> None:
    """`kubectl auth can-i --list`."""
    bind(desk, {"kind": "User", "name": "u"}, rule={"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]})
    bind(desk, {"kind": "User", "name": "u"}, cluster=True, rule={"verbs": ["get"], "nonResourceURLs": ["/x"]}, name="c")
    assert review(desk, "SelfSubjectRulesReview", {"namespace": "default"}, Caller("u", ())) == {
        "resourceRules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
        "incomplete": False,
    }
    with pytest.raises(BadRequest, match=r"^no namespace on request$"):
        review(desk, "SelfSubjectRulesReview", {})


def test_incomplete_questions_are_refused(desk: Any) -> None:
    """Somebody has to do something, and in one way."""
    with pytest.raises(Invalid, match="at least one of user or group must be specified"):
        review(desk, "SubjectAccessReview", {"resourceAttributes": ATTRIBUTES})
    with pytest.raises(Invalid, match="exactly one of nonResourceAttributes or resourceAttributes must be specified"):
        review(desk, "SelfSubjectAccessReview", {})
    with pytest.raises(Invalid, match=r'{"Path":"/","Verb":"get"}: cannot be specified in combination with resourceAttributes'):
        review(desk, "SelfSubjectAccessReview", {"resourceAttributes": ATTRIBUTES, "nonResourceAttributes": {"path": "/", "verb": "get"}})
    with pytest.raises(Invalid, match=r"must match metadata\.namespace"):
        review(desk, "LocalSubjectAccessReview", {"user": "u", "resourceAttributes": {**ATTRIBUTES, "namespace": "other"}})


def test_one_can_ask_who_one_is(desk: Any) -> None:
    """`kubectl auth whoami`."""
    caller = Caller("u", ("g",), extra=(("scopes", ("a", "b")),), uid="1")
    assert review(desk, "SelfSubjectReview", {}, caller)["userInfo"] == {
        "username": "u",
        "uid": "1",
        "groups": ["g"],
        "extra": {"scopes": ["a", "b"]},
    }


def test_tokens_are_reviewed_with_their_audiences(desk: Any) -> None:
    """Bad tokens, good ones, and good ones for somebody else."""
    user = {"username": "u", "uid": "1", "groups": ["g"]}
    handler = TokenReviews(lambda token: {**user, "audiences": ["api", "other"]} if token == "good" else None)

    def answer(token: str, *audiences: str) -> Tree:
        status: Tree = handler.create("", {"spec": {"token": token, "audiences": list(audiences)}}, desk.api.context(WriteOptions()))["status"]
        return status

    assert answer("good") == {"authenticated": True, "user": user, "audiences": ["api", "other"]}
    assert answer("good", "other", "third") == {"authenticated": True, "user": user, "audiences": ["other"]}
    assert "authenticated" not in answer("good", "third")
    assert answer("bad") == {"user": {}, "error": "[invalid bearer token, token lookup failed]"}


# ------------------------------------------------------------------------------------------------------ what every cluster has


def test_default_roles_are_valid_and_bound() -> None:
    """They pass their own validation, and each binding has its role."""
    roles = {each["metadata"]["name"]: each for each in default_cluster_roles()}
    for each in roles.values():
        assert list(access.cluster_role(each)) == []
    for each in default_cluster_role_bindings():
        assert list(access.cluster_role_binding(each)) == []
        assert each["roleRef"]["name"] in roles


@pytest.mark.parametrize(
    "role, verb, resource, allowed",
    [
        ("view", "list", "pods", True),
        ("view", "get", "secrets", False),
        ("view", "create", "pods", False),
        ("edit", "create", "pods", True),
        ("edit", "get", "secrets", True),
        ("edit", "create", "roles", False),
        ("admin", "create", "roles", True),
        ("admin", "create", "resourcequotas", False),
        ("cluster-admin", "create", "nodes", True),
    ],
)
def test_default_roles_allow_what_they_are_for(role: str, verb: str, resource: str, allowed: bool) -> None:
    """Each level has what the one below has, and more."""
    rules = next(each["rules"] for each in default_cluster_roles() if each["metadata"]["name"] == role)
    wanted = Attributes(verb, RBAC if resource == "roles" else "", resource)
    assert any(allows(rule, wanted) for rule in rules) == allowed
