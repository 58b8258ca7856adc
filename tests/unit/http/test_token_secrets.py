"""Secrets that hold the token of a service account."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import httpx

from kubemini.api.resources import SECRETS
from kubemini.serving import ServedCluster

ACCOUNT = "kubernetes.io/service-account.name"


def secret(name: str, account: str, **annotations: str) -> dict[str, Any]:
    """Return a Secret for a token."""
    meta = {"name": name, "namespace": "default", "annotations": {ACCOUNT: account, **annotations}}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "kubernetes.io/service-account-token"}


async def test_a_secret_is_given_a_token_that_works() -> None:
    """Token, namespace, certificate and the account's uid are filled in; who presents the token is the account, until the Secret is gone."""
    async with ServedCluster(controllers="namespaces,service-accounts", seed=1, token="admin") as cluster:
        await cluster.client.create(SECRETS, secret("t", "default"))
        filled = await cluster.wait("secret/t", "jsonpath={.data.namespace}=ZGVmYXVsdA==")
        assert filled is not None
        account = await cluster.get("serviceaccount/default")
        assert filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"] == account["metadata"]["uid"]
        assert cluster.listener.tls is not None
        assert b64decode(filled["data"]["ca.crt"]).decode() == cluster.listener.tls.authority
        assert (await cluster.get("configmap/kube-root-ca.crt"))["data"] == {"ca.crt": cluster.listener.tls.authority}
        headers = {"Authorization": f"Bearer {b64decode(filled['data']['token']).decode()}"}
        async with httpx.AsyncClient(base_url=cluster.listener.url, verify=False, headers=headers) as http:
            path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
            assert (await http.post(path, json={})).json()["status"]["userInfo"]["username"] == "system:serviceaccount:default:default"
            await cluster.delete("secret/t")
            assert (await http.post(path, json={})).status_code == 401


async def test_a_secret_goes_with_its_account() -> None:
    """A Secret is deleted where its account does not exist, is another one, or is deleted later."""
    async with ServedCluster(tls=False, controllers="namespaces,service-accounts", seed=1) as cluster:
        await cluster.client.create(SECRETS, secret("nobody", "nobody"))
        await cluster.client.create(SECRETS, secret("other", "default", **{"kubernetes.io/service-account.uid": "another"}))
        await cluster.wait("secret/nobody", "delete")
        await cluster.wait("secret/other", "delete")
        await cluster.apply("{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}")
        await cluster.client.create(SECRETS, secret("robot", "robot"))
        await cluster.wait("secret/robot", "jsonpath={.data.namespace}=ZGVmYXVsdA==")
        await cluster.delete("serviceaccount/robot")
        await cluster.wait("secret/robot", "delete")
