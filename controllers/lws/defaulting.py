"""The mutating webhook of LeaderWorkerSets, on create and update. Most defaults are the schema's; these are what the schema cannot say."""

from __future__ import annotations

from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.machinery.schema.roundtrip import go_written
from kubemini.runtime.webhooks import WebhookRequest

ROLLING = "RollingUpdate"
RESTART_POLICIES = {"": "RecreateGroupOnPodRestart", "Default": "None"}
"""What becomes of a policy that is missing, and of the deprecated one."""


def default(request: WebhookRequest) -> Tree | None:
    """Return a LeaderWorkerSet with its defaults, None where it has them."""
    return None if request.obj is None else defaulted(request.obj)


def defaulted(lws: Tree, version: str = DEFAULT_VERSION) -> Tree | None:
    """Return a LeaderWorkerSet with defaults filled in, and what it embeds as a Go webhook hands it back; None, with no such rewriting, where none are missing."""
    before: Tree = lws.get("spec") or {}
    spec = dict(before)
    template: Tree = before.get("leaderWorkerTemplate") or {}
    policy = RESTART_POLICIES.get(template.get("restartPolicy") or "")
    if policy is not None:
        template = {**template, "restartPolicy": policy}
        spec["leaderWorkerTemplate"] = template
    strategy: Tree = dict(before.get("rolloutStrategy") or {})
    if not strategy.get("type"):
        strategy["type"] = ROLLING
    if strategy["type"] == ROLLING and strategy.get("rollingUpdateConfiguration") is None:
        strategy["rollingUpdateConfiguration"] = {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}
    spec["rolloutStrategy"] = strategy
    network: Tree = before.get("networkConfig") or {}
    if not network.get("subdomainPolicy"):
        spec["networkConfig"] = {**network, "subdomainPolicy": "Shared"}
    if spec == before:
        return None
    spec["leaderWorkerTemplate"] = _written(template, version)
    return {**lws, "spec": spec}


def _written(template: Tree, version: str) -> Tree:
    pod, claim = go_written("core/v1.PodTemplateSpec", version), go_written("core/v1.PersistentVolumeClaim", version)
    template = dict(template)
    for key in ("leaderTemplate", "workerTemplate"):
        if isinstance(template.get(key), dict):
            template[key] = pod(template[key])
    if template.get("volumeClaimTemplates"):
        template["volumeClaimTemplates"] = [claim(each) for each in template["volumeClaimTemplates"]]
    return template
