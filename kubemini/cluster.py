"""`Cluster`: the composition root. Store, request path, admission, controllers and a fleet, in one process.

    async with Cluster(fleet="h100-2racks") as cluster:
        await cluster.apply(manifest)
        await cluster.wait("jobset/train", "condition=Completed")

In real time it runs on whatever asyncio loop is running; under virtual time on the loop of `kubemini.sim`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kubemini import bootstrap
from kubemini.api.resources import EVENTS, NODES, PODS, Resource
from kubemini.api.trees import Tree
from kubemini.components import COMPONENTS, Component
from kubemini.dns.zone import Zone
from kubemini.inprocess import InProcessClient
from kubemini.machinery.collecting import collect_rarely
from kubemini.machinery.errors import ConfigError, NotFound
from kubemini.machinery.schema.builtin import builtin_schemas
from kubemini.manifests import Manifest, load
from kubemini.runtime.client import Client
from kubemini.runtime.controller import Controller
from kubemini.runtime.env import Env
from kubemini.runtime.gates import FeatureGates
from kubemini.runtime.manager import SLICE, Manager
from kubemini.runtime.settings import Settings
from kubemini.server.kinds import builtin_registry
from kubemini.server.options import Caller
from kubemini.server.plugins.disabled_fields import DropDisabledFields
from kubemini.server.plugins.tolerations import ExtendedResourceToleration
from kubemini.server.requests import ApiServer
from kubemini.server.setup import api_server
from kubemini.store import ExpiringTable, Store
from kubemini.waiting import parse as parse_wish
from kubemini.webhooks import WebhookAdmission

POD_MODES = ("forever", "programs")
"""What pods can do by default."""
Fleet = str | Path | Sequence[Mapping[str, Any]] | Mapping[str, Any]


class Cluster:
    """A whole control plane.

    `fleet` is a preset, a YAML file, node groups, or "none"; `controllers` the names to run ("*" = all, "-name" leaves one out); `pods` says what
    pods do by default (``forever`` or ``programs``); `metrics_server` serves metrics.k8s.io; `event_ttl` is how many seconds events are kept after their last write; `seed` makes ids and chance repeatable (None draws one). `separate` gives each upstream process its own
    caches, as the simulation wants it; otherwise all controllers share one set. `program` says what each pod does (see the kubelet's ``Program``); further
    keyword arguments are fields of `Settings`.
    """

    def __init__(
        self,
        *,
        fleet: Fleet = "none",
        controllers: str | Iterable[str] = "*",
        pods: str = "forever",
        seed: int | None = None,
        feature_gates: FeatureGates | Mapping[str, bool] | None = None,
        kueue: Mapping[str, Any] | None = None,
        kubernetes_version: str = "1.36",
        env: Env | None = None,
        separate: bool = False,
        metrics_server: bool = False,
        event_ttl: float = 3600.0,
        debug: bool = False,
        program: Callable[[Tree], Any] | None = None,
        **settings: Any,
    ) -> None:
        if pods not in POD_MODES:
            raise ConfigError(f"pods: unknown {pods!r}; there are {' and '.join(POD_MODES)}")
        if env is None:
            env = Env.fresh() if seed is None else Env(seed=seed)
        self.env = env
        try:
            self.gates = feature_gates if isinstance(feature_gates, FeatureGates) else FeatureGates(feature_gates)
        except ValueError as problem:
            raise ConfigError(f"feature_gates: {problem}") from None
        self.settings = Settings(gates=self.gates, kueue=kueue or {}, pods=pods, kubernetes_version=kubernetes_version, program=program, **settings)
        self.store = Store(debug=debug)
        self.events = ExpiringTable(self.store, EVENTS.storage, event_ttl, env.now)
        self.store.tables[EVENTS.storage] = self.events
        self.components = _chosen(controllers)
        self.separate = separate
        self.server: ApiServer = api_server(
            self.store,
            builtin_registry(kubernetes_version, metrics_server=metrics_server, enabled=self.gates.enabled),
            env,
            builtin_schemas(kubernetes_version),
        )
        for component in self.components:
            for webhook in component.webhooks(self.settings):
                self.server.chain.add(WebhookAdmission(webhook, self.gates))
        if self.gates.enabled("GenericWorkload"):
            from kubemini.server.plugins.pod_groups import pod_group_plugins

            for plugin in pod_group_plugins(self.gates.enabled):
                self.server.chain.add(plugin)
        else:
            self.server.chain.add(DropDisabledFields("schedulingGroup"))
        self.client = InProcessClient(self.server, Caller(agent="kubemini"), track=True)
        self.managers: dict[str, Manager] = {}
        self.failures: list[tuple[str, str, Exception]] = []
        """The last reconciles that ended in an unexpected exception: (controller, key, exception). Always a defect of kubemini."""
        self._fleet = fleet

    # ------------------------------------------------------------------ life

    async def start(self) -> None:
        """Create the bootstrap objects and the fleet, and start the controllers; return when their caches are in sync and pods can be created.

        From now on the garbage collector looks seldom in this process (see `kubemini.machinery.collecting`).
        """
        collect_rarely()
        for resource, obj in self.bootstrap_objects():
            await self.client.create(resource, obj)
        for component_group in self._processes().values():
            await self.start_manager(component_group)
        if self._fleet != "none":
            from kubemini.fleets import load_fleet

            nodes = load_fleet(self._fleet)
            if any(
                "/" in taint["key"] and taint["key"] in (node["status"].get("allocatable") or {})
                for node in nodes
                for taint in node["spec"].get("taints") or ()
            ):
                self.server.chain.add(ExtendedResourceToleration())
            for node in nodes:
                await self.client.create(NODES, node)
        if any(component.name == "service-accounts" for component in self.components):
            await self.wait("serviceaccount/default", "create")  # the first pod that anybody creates runs as it

    def bootstrap_objects(self) -> list[tuple[Resource, Tree]]:
        """Return what exists from the start, in the order in which it is created."""
        made = bootstrap.objects([component.namespace for component in self.components if component.namespace])
        return [*made, *(each for component in self.components for each in component.objects(self.settings))]

    def _processes(self) -> dict[str, list[Component]]:
        groups: dict[str, list[Component]] = {}
        for component in self.components:
            groups.setdefault(component.process if self.separate else "kubemini", []).append(component)
        return groups

    def manager_of(self, components: Sequence[Component], name: str) -> Manager:
        """Build (not start) a manager of some components."""
        controllers: list[Controller] = [controller for component in components for controller in component.create(self.settings)]
        client = self.controller_client(name)
        return Manager(
            name, controllers, client=client, env=self.env, gates=self.gates, slice_seconds=0.0 if self.separate else SLICE, on_error=self._failed
        )

    def _failed(self, controller: Controller, key: str, problem: Exception) -> None:
        self.failures.append((controller.name, key, problem))
        del self.failures[:-100]

    def controller_client(self, process: str) -> Client:
        """Return the client of one controller process; the simulation overrides this to put faults in between."""
        return InProcessClient(self.server, Caller(user=f"system:{process}", agent=process))

    async def start_manager(self, components: Sequence[Component]) -> Manager:
        """Build and start the manager of one process."""
        name = components[0].process if self.separate else "kubemini"
        manager = self.managers[name] = self.manager_of(components, name)
        await manager.start()
        return manager

    async def restart(self, process: str) -> None:
        """Kill a controller process wherever it is, and start it anew with cold caches."""
        manager = self.managers.pop(process)
        await manager.stop()
        await self.start_manager(self._processes()[process])

    async def stop(self) -> None:
        """Stop every controller."""
        managers, self.managers = self.managers, {}
        for manager in managers.values():
            await manager.stop()

    @property
    def ready(self) -> bool:
        """Whether every controller runs on caches in sync."""
        return bool(self.managers) and all(manager.ready for manager in self.managers.values())

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        await self.stop()

    # ------------------------------------------------------------------ using it

    def resource(self, kind: str) -> Resource:
        """Return the resource that a user means by a kind, plural, singular or short name (``jobset``, ``jobsets``, ``sts``, ``jobs.batch``). Raise `ConfigError`."""
        wanted = kind.lower()
        for each in self.server.registry:
            names = (each.plural, each.singular, each.kind.lower(), *each.short_names, each.qualified, f"{each.singular}.{each.group}")
            if wanted in names:
                version = self.server.registry.preferred(each).version.name
                return Resource(each.group, version, each.plural, each.kind, each.namespaced)
        raise ConfigError(f"the cluster serves no kind {kind!r}; see `kubectl api-resources`, or apply its CustomResourceDefinition first")

    async def apply(self, manifest: Manifest, *, namespace: str = "default") -> list[Tree]:
        """Create the objects of a manifest, or bring live ones to it (server-side apply, forced); return them as stored.

        `namespace` is for namespaced objects that name none. Raise `ConfigError` for a manifest that cannot be read or names an unknown kind, `ApiStatus` for what the API
        refuses; what came before a refused object stays applied, as with kubectl.
        """
        applied = []
        for document in load(manifest):
            served = self.server.registry.by_kind(document["apiVersion"], document["kind"])
            if served is None:
                raise ConfigError(
                    f'no matches for kind "{document["kind"]}" in version "{document["apiVersion"]}"; apply its CustomResourceDefinition first'
                )
            kind = served.kind
            resource = Resource(kind.group, served.version.name, kind.plural, kind.kind, kind.namespaced)
            meta = dict(document.get("metadata") or {})
            if kind.namespaced:
                meta.setdefault("namespace", namespace)
            obj = {**document, "metadata": meta}
            if meta.get("name"):
                applied.append(await self.client.apply(resource, obj, manager="kubemini"))
            else:
                applied.append(await self.client.create(resource, obj))
        return applied

    def _reference(self, reference: str, namespace: str) -> tuple[Resource, str, str]:
        kind, slash, name = reference.partition("/")
        if not slash or not name:
            raise ConfigError(f"{reference!r} must be KIND/NAME, such as jobset/train")
        resource = self.resource(kind)
        return resource, name, namespace if resource.namespaced else ""

    async def get(self, reference: str, *, namespace: str = "default") -> Tree:
        """Return an object by ``KIND/NAME``. Raise `NotFound`, `ConfigError`."""
        resource, name, space = self._reference(reference, namespace)
        return await self.client.get(resource, name, space)

    async def list(self, kind: str, *, namespace: str = "", selector: str = "") -> Sequence[Tree]:
        """Return the objects of a kind in key order, of all namespaces unless one is named; `selector` is a label selector. Raise `ConfigError`."""
        return await self.client.list(self.resource(kind), namespace, label_selector=selector)

    async def delete(self, reference: str, *, namespace: str = "default", propagation: str = "Background") -> None:
        """Delete an object by ``KIND/NAME``. Raise `NotFound`, `ConfigError`."""
        resource, name, space = self._reference(reference, namespace)
        await self.client.delete(resource, name, namespace=space, propagation=propagation)

    async def patch(self, reference: str, patch: Mapping[str, Any], *, namespace: str = "default", subresource: str = "") -> Tree:
        """Merge a patch (RFC 7386; None deletes a field) into an object by ``KIND/NAME``, or into its `subresource`; return it. Raise `ApiStatus`, `ConfigError`."""
        resource, name, space = self._reference(reference, namespace)
        return await self.client.patch(resource, name, dict(patch), namespace=space, subresource=subresource)

    async def scale(self, reference: str, replicas: int, *, namespace: str = "default") -> Tree:
        """Ask for another number of replicas, as ``kubectl scale`` does; return the Scale. Raise `NotFound` for kinds that do not scale too, `ConfigError`."""
        return await self.patch(reference, {"spec": {"replicas": replicas}}, namespace=namespace, subresource="scale")

    def why(self, reference: str, *, namespace: str = "default") -> Tree | None:
        """Return how the last decision about ``pod/NAME`` (by the scheduler) or ``workload/NAME`` (by Kueue) came out; None where there was none yet.

        For a pod: ``node`` (None = no node does), ``message``, and ``refusals`` by node; for a Workload what `kubemini.controllers.kueue.why.Attempt.tree` says.
        """
        resource, name, space = self._reference(reference, namespace)
        for manager in self.managers.values():
            for controller in manager.controllers:
                found = controller.decision_about(resource, f"{space}/{name}")
                if found is not None:
                    return found
        return None

    # ------------------------------------------------------------------ disturbing it

    async def fail_pod(self, namespace: str, name: str, *, exit_code: int = 1, uid: str = "") -> None:
        """Let a pod's containers exit as a crash does. A pod that is gone, has ended or (with `uid`) is another one is left alone."""
        from kubemini.controllers.kubelet.statuses import terminated

        try:
            pod = await self.client.get(PODS, name, namespace)
            if uid and pod["metadata"]["uid"] != uid:
                return
            if pod["status"].get("phase") in ("Pending", "Running") and pod["spec"].get("nodeName"):
                await self.client.update_status(PODS, {**pod, "status": terminated(pod, now=self.env.stamp(), exit_code=exit_code)})
        except NotFound:
            return

    async def delete_pod(self, namespace: str, name: str, *, uid: str = "") -> None:
        """Delete a pod as a user does; with `uid` only that one (else `Conflict`)."""
        try:
            await self.client.delete(PODS, name, namespace=namespace, uid=uid)
        except NotFound:
            return

    async def lose_node(self, name: str) -> None:
        """Let a node's kubelet fall silent: its pods stay as they are, and the node turns Unknown."""
        await self.client.patch(NODES, name, {"metadata": {"annotations": {"kubemini.dev/lost": "true"}}})

    async def recover_node(self, name: str) -> None:
        """Let a lost node answer again."""
        await self.client.patch(NODES, name, {"metadata": {"annotations": {"kubemini.dev/lost": None}}})

    # ------------------------------------------------------------------ watching it

    def resolve(self, name: str, *, namespace: str = "default") -> Sequence[str]:
        """Return the addresses that a pod in `namespace` finds under a DNS name (``train-worker-0-0.train``); [] where it does not resolve."""
        return Zone(self.server.reader).resolve(name, namespace=namespace)

    async def wait(self, reference: str, wish: str, *, namespace: str = "default", timeout: float = 600.0) -> Tree | None:
        """Wait until an object is as wished and return it (None where it was to be deleted).

        `wish` is as for ``kubectl wait --for``: ``condition=Ready``, ``jsonpath={.status.phase}=Running``, ``create``, ``delete``. `timeout` in seconds (virtual ones in a
        simulation). Raise `TimeoutError` with what was there instead.
        """
        resource, name, space = self._reference(reference, namespace)
        test = parse_wish(wish)
        table = self.store.table(resource.storage)
        key = f"{space}/{name}" if space else name
        cursor = table.watch(predicate=lambda obj: bool(obj["metadata"]["name"] == name))
        try:
            async with asyncio.timeout(timeout):
                while True:
                    record = table.get(key)
                    obj = record.obj if record is not None else None
                    if test(obj):
                        return obj
                    cursor.poll()
                    await cursor.wait()
        except TimeoutError:
            record = table.get(key)
            found = "it does not exist" if record is None else f"its status is {record.obj.get('status')}"
            raise TimeoutError(f"{reference} was not {wish} within {timeout:g} s: {found}") from None
        finally:
            cursor.close()


def _chosen(controllers: str | Iterable[str]) -> list[Component]:
    names = [controllers] if isinstance(controllers, str) else list(controllers)
    names = [part.strip() for name in names for part in name.split(",") if part.strip()]
    known = {component.name for component in COMPONENTS}
    unknown = [name for name in names if name != "*" and name.removeprefix("-") not in known]
    if unknown:
        raise ConfigError(
            f"controllers: unknown {', '.join(map(repr, unknown))}; known are {', '.join(sorted(known))}, '*' for all, and '-NAME' to leave one out"
        )
    dropped = {name[1:] for name in names if name.startswith("-")}
    everything = "*" in names or all(name.startswith("-") for name in names)
    return [component for component in COMPONENTS if component.name not in dropped and (everything or component.name in names)]
