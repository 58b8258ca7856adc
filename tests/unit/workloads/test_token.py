"""TokenRequest: who gets which token for how long."""

from __future__ import annotations

from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import BadRequest, Conflict, Invalid, NotFound
from kubemini.runtime.env import Env
from kubemini.server.subresources.token import ISSUER, TokenIssuer
from tests.unit.workloads.bench import Bench


def request(bench: Bench, **spec: Any) -> Tree:
    """Ask for a token of account `sa`."""
    return bench.act("ServiceAccount", "sa", "token", {"spec": spec}).obj


@pytest.fixture
def account(bench: Bench) -> Tree:
    """Return a service account."""
    return bench.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "sa"}})


def pod_of(bench: Bench, account: str) -> Tree:
    """Create a pod of an account on a node that is gone."""
    spec = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": account, "nodeName": "n"}
    return bench.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec})


def test_a_token_speaks_for_its_account(bench: Bench, account: Tree) -> None:
    """The answer has the defaults filled in, and a token that verifies as the account until it expires."""
    made = request(bench)
    assert made["spec"] == {"audiences": [ISSUER], "expirationSeconds": 3600}
    assert made["status"]["expirationTimestamp"] == "2026-01-01T01:00:00Z"
    issuer = bench.api.subresources.find("serviceaccounts", "token").issuer  # type: ignore[union-attr]
    identity = issuer.verify(made["status"]["token"])
    assert identity.user == "system:serviceaccount:default:sa"
    assert identity.uid == account["metadata"]["uid"]
    assert identity.groups == ("system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
    bench.now += 3600
    assert issuer.verify(made["status"]["token"]) is None


def test_a_bound_token_names_pod_and_node(bench: Bench, account: Tree) -> None:
    """A token that is bound to a pod carries the pod and its node; a node that is gone is named without a uid."""
    pod = pod_of(bench, "sa")
    made = request(bench, audiences=["x"], boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p"})
    issuer = bench.api.subresources.find("serviceaccounts", "token").issuer  # type: ignore[union-attr]
    claims = issuer.verify(made["status"]["token"]).claims
    assert claims["aud"] == ["x"]
    assert claims["kubernetes.io"] == {
        "namespace": "default",
        "node": {"name": "n"},
        "pod": {"name": "p", "uid": pod["metadata"]["uid"]},
        "serviceaccount": {"name": "sa", "uid": account["metadata"]["uid"]},
    }


@pytest.mark.parametrize(
    "spec,error,text",
    [
        ({"expirationSeconds": 599}, Invalid, "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes"),
        ({"expirationSeconds": 2**32 + 1}, Invalid, "may not specify a duration larger than 2^32 seconds"),
        ({"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "nope"}}, NotFound, 'pods "nope" not found'),
        ({"boundObjectRef": {"kind": "Foo", "apiVersion": "v1", "name": "f"}}, BadRequest, "cannot bind token to object of type /v1, Kind=Foo"),
        (
            {"boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "p"}},
            BadRequest,
            'cannot bind token for serviceaccount "sa" to pod running with different serviceaccount name.',
        ),
    ],
)
def test_refusals(bench: Bench, account: Tree, spec: Tree, error: type[Exception], text: str) -> None:
    """Lifetimes are bounded, and a token is bound to existing objects that use the account."""
    pod_of(bench, "other")
    with pytest.raises(error) as problem:
        request(bench, **spec)
    assert text in str(problem.value)


def test_a_bound_object_may_be_pinned(bench: Bench, account: Tree) -> None:
    """A reference with another object's uid is a conflict."""
    pod_of(bench, "sa")
    with pytest.raises(Conflict, match="the UID in the bound object reference"):
        request(bench, boundObjectRef={"kind": "Pod", "apiVersion": "v1", "name": "p", "uid": "x"})


def test_the_body_may_not_name_another_account(bench: Bench, account: Tree) -> None:
    """A name in the body that is not the account's is refused."""
    with pytest.raises(Invalid, match="must match the service account name if specified"):
        bench.act("ServiceAccount", "sa", "token", {"metadata": {"name": "sb"}, "spec": {}})


def test_tokens_of_others_are_refused() -> None:
    """A token that was signed with another key, was changed, or is no token verifies as nobody."""
    here, there = (TokenIssuer(Env(seed=seed, clock=lambda: 5.0)) for seed in (1, 2))
    token = here.sign({"sub": "a", "nbf": 0, "exp": 10})
    assert here.verify(token) is not None
    assert there.verify(token) is None
    head, claims, signature = token.split(".")
    for broken in (f"{head}.{claims}x.{signature}", f"{head}.{claims}", "a.b.c", f"{head}.{claims}.{signature[:-4]}"):
        assert here.verify(broken) is None


def test_tokens_repeat_with_the_seed() -> None:
    """Key and signature follow from the seed, byte for byte."""
    one, other = (TokenIssuer(Env(seed=1, clock=lambda: 5.0)).sign({"sub": "a"}) for _ in range(2))
    assert one == other
