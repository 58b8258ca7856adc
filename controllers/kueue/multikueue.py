"""What MultiKueue says of its clusters and checks. The clusters themselves are not emulated: one that could be connected to says just that.

Mirrors the statuses of Kueue's ``pkg/controller/admissionchecks/multikueue``.
"""

from __future__ import annotations

import base64
import binascii
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from kubemini.api.resources import ADMISSION_CHECKS, MULTI_KUEUE_CLUSTERS, MULTI_KUEUE_CONFIGS, SECRETS
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.parameters import parameters_problem
from kubemini.machinery.names import dns1123_subdomain
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import key_of

NAMESPACE: Final = "kueue-system"
KUBECONFIG_KEY: Final = "kubeconfig"
PATH_PREFIX: Final = "/etc/multikueue/kubeconfigs"
NO_VERSION: Final = "json: cannot unmarshal string into Go value of type struct"
NO_CONFIGURATION: Final = "invalid configuration: no configuration has been provided, try setting KUBERNETES_MASTER environment variable"


class Unusable(Exception):
    """A cluster's configuration cannot be used, for a `reason`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"load client config failed: {message}")
        self.reason = reason


class MultiKueueClusterController(Controller):
    """Keys are MultiKueueClusters."""

    name = "kueue-multikueuecluster"
    component = "kueue-multikueuecluster-controller"

    def setup(self, ctx: Context) -> None:
        """Follow clusters and the Secrets that they name."""
        self._ctx = ctx
        self._clusters = ctx.informer(MULTI_KUEUE_CLUSTERS)
        self._secrets = ctx.informer(SECRETS)
        self._clusters.on_change(lambda old, new: self.queue.add(key_of(new)) if new is not None else None)
        self._secrets.on_change(self._on_secret)

    def _on_secret(self, old: Tree | None, new: Tree | None) -> None:
        tree = new if new is not None else old
        if tree is None or tree["metadata"]["namespace"] != NAMESPACE:
            return
        for key, cluster in self._clusters.objects.items():
            if _kubeconfig(cluster).get("location") == tree["metadata"]["name"]:
                self.queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        """Say whether a cluster can be used."""
        cluster = self._clusters.get_key(key)
        if cluster is None or "deletionTimestamp" in cluster["metadata"]:
            return None
        reason, message = "ClientConnectionFailed", "other clusters are not emulated"
        try:
            self._check(cluster)
        except Unusable as problem:
            reason, message = problem.reason, str(problem)
        draft = Draft(cluster, self._ctx.env.stamp())
        if draft.mark(names.ACTIVE, False, reason, message):
            await self._ctx.client.update_status(MULTI_KUEUE_CLUSTERS, draft.tree())
        return None

    def _check(self, cluster: Tree) -> None:
        if cluster["spec"]["clusterSource"].get("clusterProfileRef") is not None:
            raise Unusable("MultiKueueClusterProfileFeatureDisabled", "MultiKueueClusterProfile feature gate is disabled")
        source = _kubeconfig(cluster)
        location = source.get("location", "")
        if source.get("locationType", "Secret") != "Secret":
            raise Unusable("BadKubeConfig", f'kubeconfig path is not under the allowed prefix: "{location}" is not under "{PATH_PREFIX}"')
        secret = self._secrets.get(location, NAMESPACE)
        if secret is None:
            raise Unusable("BadKubeConfig", f'Secret "{location}" not found')
        data = (secret.get("data") or {}).get(KUBECONFIG_KEY)
        if data is None:
            raise Unusable("BadKubeConfig", f'key "{KUBECONFIG_KEY}" not found in secret "{location}"')
        problem = kubeconfig_problem(data)
        if problem:
            raise Unusable("InsecureKubeConfig", problem)


def _kubeconfig(cluster: Tree) -> Tree:
    found: Tree = cluster["spec"]["clusterSource"].get("kubeConfig") or {}
    return found


def kubeconfig_problem(encoded: str) -> str:
    """Return why a kubeconfig (base64) is not taken, or ""."""
    import yaml

    try:
        config: Any = yaml.safe_load(base64.b64decode(encoded))
    except (yaml.YAMLError, binascii.Error, UnicodeDecodeError) as problem:
        return f"failed to parse kubeconfig(apiconfig): {problem}"
    if not isinstance(config, dict):
        return f"failed to parse kubeconfig(apiconfig): couldn't get version/kind; json parse error: {NO_VERSION}"
    clusters, users, contexts = (_named(config.get(f"{kind}s"), kind) for kind in ("cluster", "user", "context"))
    if any(user.get("tokenFile") for user in users.values()):
        return "tokenFile is not allowed"
    for name, cluster in clusters.items():
        if cluster.get("insecure-skip-tls-verify"):
            return f"insecure TLS verification is not allowed for cluster {name}"
        if cluster.get("certificate-authority"):
            return f"certificate-authority file paths are not allowed, use certificate-authority-data for cluster {name}"
        if not cluster.get("server"):
            return f"server URL is required for cluster {name}"
    context = contexts.get(config.get("current-context", ""))
    if context is None or context.get("cluster") not in clusters:
        return NO_CONFIGURATION
    return _endpoint_problem(clusters[context["cluster"]]["server"]) or _user_problem(users.get(context.get("user", ""), {}))


def _named(entries: Any, key: str) -> dict[str, Tree]:
    return {each.get("name", ""): each.get(key) or {} for each in entries or () if isinstance(each, dict)}


def _endpoint_problem(server: str) -> str:
    try:
        host = (urlsplit(server).hostname or "").lower()
    except ValueError:
        return "untrusted server endpoint"
    try:
        ip_address(host)
    except ValueError:
        return "untrusted server endpoint" if dns1123_subdomain(host) else ""
    return ""


def _user_problem(user: Tree) -> str:
    if user.get("username") or user.get("password"):
        return "basic auth is not allowed"
    if user.get("exec") is not None:
        return "exec plugins are not allowed"
    return "auth providers are not allowed" if user.get("auth-provider") is not None else ""


class MultiKueueCheckController(Controller):
    """Keys are AdmissionChecks of MultiKueue: active while some of their clusters are."""

    name = "kueue-multikueue-admissioncheck"
    component = "kueue-multikueue-admissioncheck-controller"

    def setup(self, ctx: Context) -> None:
        """Follow checks, their configurations and clusters."""
        self._ctx = ctx
        self._checks = ctx.informer(ADMISSION_CHECKS)
        self._configs = ctx.informer(MULTI_KUEUE_CONFIGS)
        self._clusters = ctx.informer(MULTI_KUEUE_CLUSTERS)
        self._checks.on_change(lambda old, new: self.queue.add(key_of(new)) if new is not None else None)
        for informer in (self._configs, self._clusters):
            informer.on_change(self._on_other)

    def _on_other(self, old: Tree | None, new: Tree | None) -> None:
        for key, check in self._checks.objects.items():
            if check["spec"].get("controllerName") == names.MANAGED_BY_MULTI_KUEUE:
                self.queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        """Say whether a check can be used."""
        check = self._checks.get_key(key)
        if check is None or check["spec"].get("controllerName") != names.MANAGED_BY_MULTI_KUEUE:
            return None
        draft = Draft(check, self._ctx.env.stamp())
        if draft.mark(names.ACTIVE, *self._state(check["spec"].get("parameters"))):
            await self._ctx.client.update_status(ADMISSION_CHECKS, draft.tree())
        return None

    def _state(self, parameters: Tree | None) -> tuple[bool, str, str]:
        problem = parameters_problem(parameters, MULTI_KUEUE_CONFIGS)
        config = self._configs.get(parameters["name"]) if parameters is not None and not problem else None
        if parameters is None or config is None:
            why = problem or f'MultiKueueConfig.kueue.x-k8s.io "{(parameters or {}).get("name", "")}" not found'
            return False, "BadConfig", f"Cannot load the AdmissionChecks parameters: {why}"
        wanted: list[str] = config["spec"].get("clusters") or []
        known = self._clusters.objects
        missing = [name for name in wanted if name not in known]
        inactive = [name for name in wanted if name in known and not conditions.is_true(known[name], names.ACTIVE)]
        said = [f"{what} clusters: [{' '.join(found)}]" for what, found in (("Missing", missing), ("Inactive", inactive)) if found]
        if not said:
            return True, "Active", "The admission check is active"
        some = len(missing) + len(inactive) < len(wanted)
        return some, "SomeActiveClusters" if some else "NoUsableClusters", ", ".join(said)
