"""LeaderWorkerSet: replicas that are groups of one leader pod and its workers. Mirrors LWS (main of August 2026) with its webhooks."""

from __future__ import annotations

from kubemini.api.resources import CUSTOM_RESOURCE_DEFINITIONS, Resource
from kubemini.api.trees import Tree
from kubemini.controllers.lws import pod_webhook
from kubemini.controllers.lws.controller import LeaderWorkerSetController
from kubemini.controllers.lws.pod_controller import GroupController
from kubemini.controllers.lws.pod_groups import VOLCANO
from kubemini.controllers.lws.webhook import MUTATING, VALIDATING
from kubemini.machinery.errors import ConfigError
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings
from kubemini.runtime.webhooks import Webhook


def provider_of(settings: Settings) -> str:
    """Return the gang scheduler that LWS's ``Configuration`` asks for: ``volcano``, or "" for none. Raise `ConfigError` for any other."""
    found: str = (settings.lws.get("gangSchedulingManagement") or {}).get("schedulerProvider") or ""
    if found not in ("", VOLCANO):
        raise ConfigError(f"gangSchedulingManagement.schedulerProvider is {found!r}; LeaderWorkerSet knows only {VOLCANO!r}")
    return found


def create(settings: Settings) -> list[Controller]:
    """Build both loops."""
    return [LeaderWorkerSetController(), GroupController(provider_of(settings))]


def objects(settings: Settings) -> list[tuple[Resource, Tree]]:
    """Return the definition of Volcano's PodGroup where groups are gangs of Volcano's: without it no PodGroup could be made."""
    if provider_of(settings) != VOLCANO:
        return []
    # Models are a lot to load for what most clusters have not
    from kubemini.api.volcano import pod_group_definition

    return [(CUSTOM_RESOURCE_DEFINITIONS, pod_group_definition())]


def webhooks(settings: Settings) -> list[Webhook]:
    """Build the webhooks of LeaderWorkerSets and of their pods."""
    return [MUTATING, VALIDATING, pod_webhook.webhook(gang=provider_of(settings) == VOLCANO)]
