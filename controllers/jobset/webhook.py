"""The webhooks of JobSets: defaults on create, rules on create and update. Status writes pass by."""

from __future__ import annotations

from kubemini.controllers.jobset.defaulting import default
from kubemini.controllers.jobset.update_validation import validate_update
from kubemini.controllers.jobset.validation import validate_create
from kubemini.runtime.webhooks import Webhook, WebhookRequest

RESOURCES = ("jobsets.jobset.x-k8s.io",)


def validate(request: WebhookRequest) -> None:
    """Refuse what breaks a rule."""
    if request.operation == "CREATE":
        validate_create(request)
    else:
        validate_update(request)


MUTATING = Webhook("mjobset.kb.io", RESOURCES, ("CREATE",), mutate=default)
VALIDATING = Webhook("vjobset.kb.io", RESOURCES, ("CREATE", "UPDATE"), validate=validate)
