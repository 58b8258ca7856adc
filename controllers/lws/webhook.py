"""The webhooks of LeaderWorkerSets: defaults and rules on create and update. Status writes pass by."""

from __future__ import annotations

from kubemini.controllers.lws.defaulting import default
from kubemini.controllers.lws.validation import validate
from kubemini.runtime.webhooks import Webhook

RESOURCES = ("leaderworkersets.leaderworkerset.x-k8s.io",)

MUTATING = Webhook("mleaderworkerset.kb.io", RESOURCES, ("CREATE", "UPDATE"), mutate=default)
VALIDATING = Webhook("vleaderworkerset.kb.io", RESOURCES, ("CREATE", "UPDATE"), validate=validate)
