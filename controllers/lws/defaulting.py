"""The mutating webhook of LeaderWorkerSets, on create and update. Most defaults are the schema's; these are what the schema cannot say."""

from __future__ import annotations

from kubemini.api.schemas.records import DEFAULT_VERSION
from kubemini.api.trees import Tree
from kubemini.machinery.schema.roundtrip import go_written
from kubemini.runtime.webhooks import WebhookRequest

ROLLING = "RollingUpdate"


def default(request: WebhookRequest) -> Tree | None:
    """Return a LeaderWorkerSet with its defaults, None where it has them."""
    if request.obj is None or not isinstance(request.obj.get("spec"), dict):
        return None
    found = defaulted(request.obj)
    return None if found == request.obj else found


def defaulted(lws: Tree, version: str = DEFAULT_VERSION) -> Tree:
    """Return a LeaderWorkerSet with defaults filled in, and what it embeds as a Go webhook hands it back."""
    spec: Tree = dict(lws["spec"])
    if isinstance(spec.get("leaderWorkerTemplate"), dict):
        spec["leaderWorkerTemplate"] = _template(spec["leaderWorkerTemplate"], version)
    strategy: Tree = dict(spec.get("rolloutStrategy") or {})
    if not strategy.get("type"):
        strategy["type"] = ROLLING
    if strategy["type"] == ROLLING and strategy.get("rollingUpdateConfiguration") is None:
        strategy["rollingUpdateConfiguration"] = {"partition": 0, "maxUnavailable": 1, "maxSurge": 0}
    spec["rolloutStrategy"] = strategy
    if not (spec.get("networkConfig") or {}).get("subdomainPolicy"):
        spec["networkConfig"] = {**(spec.get("networkConfig") or {}), "subdomainPolicy": "Shared"}
    return {**lws, "spec": spec}


def _template(template: Tree, version: str) -> Tree:
    pod, claim = go_written("core/v1.PodTemplateSpec", version), go_written("core/v1.PersistentVolumeClaim", version)
    template = dict(template)
    for key in ("leaderTemplate", "workerTemplate"):
        if isinstance(template.get(key), dict):
            template[key] = pod(template[key])
    if template.get("volumeClaimTemplates"):
        template["volumeClaimTemplates"] = [claim(each) for each in template["volumeClaimTemplates"]]
    if not template.get("restartPolicy"):
        template["restartPolicy"] = "RecreateGroupOnPodRestart"
    elif template["restartPolicy"] == "Default":
        # the deprecated name
        template["restartPolicy"] = "None"
    return template
