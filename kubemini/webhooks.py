"""Puts the controllers' in-process webhooks into the admission chain of the server."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.machinery.schema.go_objects import undecodable
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.webhooks import Denied, Webhook, WebhookRequest
from kubemini.server.admission import Admission, AdmissionRequest


class DeniedByWebhook(ApiStatus):
    """A refusal by a webhook, with the code and reason that the webhook chose."""

    def __init__(self, webhook: str, denied: Denied) -> None:
        super().__init__(f'admission webhook "{webhook}" denied the request: {denied.message}', details=denied.details)
        self.code, self.reason = denied.code, denied.reason


class WebhookAdmission(Admission):
    """One webhook as an admission plugin."""

    def __init__(self, webhook: Webhook, gates: FeatureGates) -> None:
        self.name = webhook.name
        self.operations = webhook.operations
        self.resources = webhook.resources
        self.subresources = webhook.subresources
        self._webhook = webhook
        self._gates = gates

    @property
    def mutates(self) -> bool:
        """Whether the webhook has a mutating function."""
        return self._webhook.mutate is not None

    @property
    def validates(self) -> bool:
        """Whether the webhook has a validating function."""
        return self._webhook.validate is not None

    def _review(self, request: AdmissionRequest) -> WebhookRequest:
        known: WebhookRequest | None = request.review
        if known is not None:
            known.obj, known.name = request.obj, request.name
            return known
        ctx = request.ctx
        known = request.review = WebhookRequest(
            request.operation,
            request.namespace,
            request.name,
            request.obj,
            request.old,
            ctx.env,
            self._gates,
            ctx.reader,
            ctx.user,
            request.subresource,
            request.warnings,
        )
        return known

    def mutate(self, request: AdmissionRequest) -> Tree | None:
        """Call the mutating function."""
        function = self._webhook.mutate
        if function is None:
            return None
        try:
            return function(self._review(request))
        except Denied as denied:
            raise DeniedByWebhook(self.name, denied) from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            self.read(request)
            raise

    def read(self, request: AdmissionRequest) -> None:
        """Refuse an object that the Go type of its kind cannot hold: such a webhook decodes it first of all."""
        kind = request.kind
        asked = kind.custom and self._webhook.decodes and request.obj is not None
        problem = undecodable(kind.group, kind.kind, request.obj or {}) if asked else ""
        if problem:
            raise DeniedByWebhook(self.name, Denied(problem, code=400, reason=""))

    def validate(self, request: AdmissionRequest) -> None:
        """Call the validating function."""
        function = self._webhook.validate
        if function is None:
            return
        try:
            function(self._review(request))
        except Denied as denied:
            raise DeniedByWebhook(self.name, denied) from None
