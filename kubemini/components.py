"""What a cluster is made of: every controller with its upstream process, loaded when it is asked for.

Each package named here has a function ``create(settings: Settings) -> list[Controller]``, when it brings admission ``webhooks(settings: Settings) ->
list[Webhook]``, and when it brings objects ``objects(settings: Settings) -> list[tuple[Resource, Tree]]``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from kubemini.api.resources import Resource
from kubemini.api.trees import Tree
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings
from kubemini.runtime.webhooks import Webhook

CONTROLLER_MANAGER = "kube-controller-manager"
OPERATORS = {"jobset": "jobset-system", "lws": "lws-system", "kueue": "kueue-system"}
"""Components that are installed into a cluster, with their namespaces."""


@dataclass(frozen=True, slots=True)
class Component:
    """One controller package: its flag name, the upstream process that it belongs to, and its module."""

    name: str
    process: str
    module: str
    namespace: str = ""
    """The namespace that its operator is installed into; "" for parts of Kubernetes itself."""

    def create(self, settings: Settings) -> Sequence[Controller]:
        """Build its controllers."""
        built: Sequence[Controller] = import_module(self.module).create(settings)
        return built

    def webhooks(self, settings: Settings) -> Sequence[Webhook]:
        """Build its webhooks."""
        make = getattr(import_module(self.module), "webhooks", None)
        return make(settings) if make is not None else ()

    def objects(self, settings: Settings) -> Sequence[tuple[Resource, Tree]]:
        """Return what its installation brings beside its own kinds."""
        make = getattr(import_module(self.module), "objects", None)
        return make(settings) if make is not None else ()


COMPONENTS: tuple[Component, ...] = tuple(
    Component(name, process, f"kubemini.controllers.{name.replace('-', '_')}", OPERATORS.get(name, ""))
    for name, process in (
        ("namespaces", CONTROLLER_MANAGER),
        ("service-accounts", CONTROLLER_MANAGER),
        ("garbage-collector", CONTROLLER_MANAGER),
        ("customresources", "kube-apiserver"),
        ("endpoints", CONTROLLER_MANAGER),
        ("job", CONTROLLER_MANAGER),
        ("cron-job", CONTROLLER_MANAGER),
        ("stateful-set", CONTROLLER_MANAGER),
        ("replica-set", CONTROLLER_MANAGER),
        ("deployment", CONTROLLER_MANAGER),
        ("daemon-set", CONTROLLER_MANAGER),
        ("disruption", CONTROLLER_MANAGER),
        ("autoscaling", CONTROLLER_MANAGER),
        ("volumes", CONTROLLER_MANAGER),
        ("resource-claims", CONTROLLER_MANAGER),
        ("pod-groups", CONTROLLER_MANAGER),
        ("quota", CONTROLLER_MANAGER),
        ("admission-policies", CONTROLLER_MANAGER),
        ("nodes", CONTROLLER_MANAGER),
        ("scheduler", "kube-scheduler"),
        ("kubelet", "kubelet"),
        ("jobset", "jobset-controller-manager"),
        ("lws", "lws-controller-manager"),
        ("disaggregated-set", "lws-controller-manager"),
        ("kueue", "kueue-controller-manager"),
        ("cluster-autoscaler", "cluster-autoscaler"),
    )
)
"""In the order in which they are started."""
