"""DisaggregatedSet: inference split into roles, each a LeaderWorkerSet, that roll out together. Mirrors LWS (main of August 2026)."""

from __future__ import annotations

from kubemini.controllers.disaggregated_set.controller import DisaggregatedSetController
from kubemini.controllers.disaggregated_set.validation import WEBHOOK
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings
from kubemini.runtime.webhooks import Webhook


def create(settings: Settings) -> list[Controller]:
    """Build the loop."""
    return [DisaggregatedSetController()]


def webhooks(settings: Settings) -> list[Webhook]:
    """Build the webhook."""
    return [WEBHOOK]
