"""Who asks, and what they may do."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from kubemini.serving import ServedCluster

ME = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def locked() -> AsyncIterator[ServedCluster]:
    """A cluster whose administrator needs a token."""
    async with ServedCluster(tls=False, token="secret", controllers="namespaces,service-accounts", seed=1) as cluster:
        await cluster.wait("serviceaccount/default", "create")
        yield cluster


@pytest.fixture
async def anybody(locked: ServedCluster) -> AsyncIterator[httpx.AsyncClient]:
    """A client without credentials."""
    async with httpx.AsyncClient(base_url=locked.listener.url) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    """Return the header of a token."""
    return {"Authorization": f"Bearer {token}"}


async def token_of_default(client: httpx.AsyncClient) -> str:
    """Return a token of the default service account."""
    answer = await client.post("/api/v1/namespaces/default/serviceaccounts/default/token", json={"spec": {}}, headers=bearer("secret"))
    assert answer.status_code == 201
    return str(answer.json()["status"]["token"])


async def test_wrong_token(anybody: httpx.AsyncClient) -> None:
    """A wrong token is refused everywhere."""
    for path in ("/version", CONFIG_MAPS):
        assert (await anybody.get(path, headers=bearer("guess"))).status_code == 401


async def test_anonymous(anybody: httpx.AsyncClient) -> None:
    """Without credentials one is anonymous: health and version are open, resources are not."""
    for path in ("/version", "/healthz", "/livez", "/readyz"):
        assert (await anybody.get(path)).status_code == 200
    answer = await anybody.get(CONFIG_MAPS)
    assert answer.status_code == 403
    assert 'User "system:anonymous" cannot list resource "configmaps"' in answer.json()["message"]


async def test_service_account_token(anybody: httpx.AsyncClient) -> None:
    """A service account's token speaks for it: RBAC decides, and its review says who it is."""
    headers = bearer(await token_of_default(anybody))
    user = (await anybody.post(ME, json={}, headers=headers)).json()["status"]["userInfo"]
    assert user["username"] == "system:serviceaccount:default:default"
    assert "system:serviceaccounts:default" in user["groups"]
    assert (await anybody.get(CONFIG_MAPS, headers=headers)).status_code == 403
    binding: dict[str, Any] = {
        "metadata": {"name": "view"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    }
    path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings"
    assert (await anybody.post(path, json=binding, headers=bearer("secret"))).status_code == 201
    assert (await anybody.get(CONFIG_MAPS, headers=headers)).status_code == 200
    assert (await anybody.post(CONFIG_MAPS, json={"metadata": {"name": "a"}}, headers=headers)).status_code == 403


async def test_token_ends_with_its_account(anybody: httpx.AsyncClient) -> None:
    """When the account is gone its tokens are worth nothing, though another takes its name."""
    headers = bearer(await token_of_default(anybody))
    await anybody.delete("/api/v1/namespaces/default/serviceaccounts/default", headers=bearer("secret"))
    assert (await anybody.post(ME, json={}, headers=headers)).status_code == 401


async def test_token_is_verified_with_the_published_key(anybody: httpx.AsyncClient) -> None:
    """Tokens are real JWTs: the key at /openid/v1/jwks verifies them."""
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicNumbers
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    def number(text: str) -> int:
        return int.from_bytes(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), "big")

    token = await token_of_default(anybody)
    key = (await anybody.get("/openid/v1/jwks", headers=bearer("secret"))).json()["keys"][0]
    head, claims, signature = token.split(".")
    raw = number(signature)
    public = EllipticCurvePublicNumbers(number(key["x"]), number(key["y"]), SECP256R1()).public_key()
    public.verify(encode_dss_signature(raw >> 256, raw & ((1 << 256) - 1)), f"{head}.{claims}".encode(), ECDSA(SHA256()))


async def test_token_review(anybody: httpx.AsyncClient) -> None:
    """A TokenReview knows our tokens, and no others."""
    token, admin = await token_of_default(anybody), bearer("secret")
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    good = (await anybody.post(path, json={"spec": {"token": token}}, headers=admin)).json()["status"]
    assert (good["authenticated"], good["user"]["username"]) == (True, "system:serviceaccount:default:default")
    bad = (await anybody.post(path, json={"spec": {"token": "x"}}, headers=admin)).json()["status"]
    assert not bad.get("authenticated")


async def test_impersonation(http: httpx.AsyncClient) -> None:
    """Impersonation headers say who is asking: name, uid, groups, extra."""
    headers = [
        ("Impersonate-User", "amy"),
        ("Impersonate-Uid", "u1"),
        ("Impersonate-Group", "a"),
        ("Impersonate-Group", "b"),
        ("Impersonate-Extra-Scopes", "view"),
    ]
    user = (await http.post(ME, json={}, headers=headers)).json()["status"]["userInfo"]
    assert user == {"username": "amy", "uid": "u1", "groups": ["a", "b", "system:authenticated"], "extra": {"scopes": ["view"]}}


async def test_impersonation_needs_a_user(http: httpx.AsyncClient) -> None:
    """A group alone is nobody."""
    answer = await http.get("/api/v1/nodes", headers={"Impersonate-Group": "a"})
    assert answer.status_code == 400
    assert "without impersonating a user name" in answer.json()["message"]


async def test_impersonation_needs_permission(anybody: httpx.AsyncClient) -> None:
    """Who may not impersonate is told so."""
    headers = bearer(await token_of_default(anybody)) | {"Impersonate-User": "amy"}
    answer = await anybody.get(CONFIG_MAPS, headers=headers)
    assert answer.status_code == 403
    assert 'cannot impersonate resource "users" in API group ""' in answer.json()["message"]


async def test_review_and_enforcement_agree(http: httpx.AsyncClient) -> None:
    """What a SelfSubjectAccessReview says is what happens, before and after a rule changes."""
    amy = {"Impersonate-User": "amy"}
    review = {"spec": {"resourceAttributes": {"namespace": "default", "verb": "list", "resource": "configmaps"}}}
    role = {"metadata": {"name": "r"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]}
    binding = {
        "metadata": {"name": "r"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "amy"}],
    }
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"

    async def both() -> tuple[bool, int]:
        said = (await http.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=review, headers=amy)).json()["status"]["allowed"]
        return said, (await http.get(CONFIG_MAPS, headers=amy)).status_code

    assert await both() == (False, 403)
    await http.post(f"{rbac}/roles", json=role)
    await http.post(f"{rbac}/rolebindings", json=binding)
    assert await both() == (True, 200)
    await http.delete(f"{rbac}/rolebindings/r")
    assert await both() == (False, 403)


async def test_claims_name_the_account(anybody: httpx.AsyncClient) -> None:
    """The claims of a token name its account."""
    claims = (await token_of_default(anybody)).split(".")[1]
    tree = orjson.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert tree["kubernetes.io"]["serviceaccount"]["name"] == "default"
