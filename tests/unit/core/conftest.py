"""A server of all built-in kinds with built-in admission and no controllers; time stands still."""

import asyncio
from typing import Any

import pytest

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.runtime.env import EPOCH, Env
from kubemini.server.admission import Chain
from kubemini.server.kinds.core import core_kinds
from kubemini.server.kinds.workloads import workload_kinds
from kubemini.server.managing import Managing
from kubemini.server.options import DeleteOptions, Outcome, Patch, WriteOptions
from kubemini.server.plugins import builtin_plugins
from kubemini.server.registry import Registry, Served
from kubemini.server.requests import ApiServer
from kubemini.server.subresources.builtin import builtin_subresources
from kubemini.store import Store

SCHEMAS = BuiltinSchemas()
KINDS = (*core_kinds(SCHEMAS.codec), *workload_kinds(SCHEMAS.codec))
NAMESPACE = "default"


class Desk:
    """Writes to a fresh API server, and tells what it answered."""

    def __init__(self, store: Store | None = None) -> None:
        self.env = Env(seed=7, clock=lambda: EPOCH)
        self.registry = Registry(KINDS)
        self.api = ApiServer(
            store=store or Store(),
            registry=self.registry,
            env=self.env,
            chain=Chain(builtin_plugins()),
            subresources=builtin_subresources(self.env),
            managing=Managing(SCHEMAS),
        )
        self.create("Namespace", name=NAMESPACE)
        self.create("ServiceAccount", name="default")

    def served(self, kind: str, group: str | None = None) -> Served:
        """Return a kind by its name (and group, where several share it)."""
        found = next(each for each in self.registry if each.kind == kind and group in (None, each.group))
        return self.registry.preferred(found)

    def outcome(
        self, kind: str, *, name: str = "x", namespace: str = NAMESPACE, group: str | None = None, meta: Tree | None = None, **fields: Any
    ) -> Outcome:
        """Create an object of some fields and return all of the answer."""
        served = self.served(kind, group)
        where = namespace if served.kind.namespaced else ""
        return asyncio.run(self.api.create(served, where, {"metadata": {"name": name, **(meta or {})}, **fields}, WriteOptions(track=False)))

    def create(self, kind: str, **fields: Any) -> Tree:
        """Create an object of some fields."""
        return self.outcome(kind, **fields).obj

    def refused(self, kind: str, **fields: Any) -> ApiStatus:
        """Return the refusal of a new object."""
        with pytest.raises(ApiStatus) as problem:
            self.create(kind, **fields)
        return problem.value

    def causes(self, kind: str, **fields: Any) -> list[str]:
        """Return the causes of a refused object as ``field: text``, in order."""
        return [f"{each['field']}: {each['message']}" for each in self.refused(kind, **fields).details["causes"]]

    def outcome_of_patch(
        self, kind: str, name: str, body: Any, *, type_: str = "merge", subresource: str = "", namespace: str = NAMESPACE
    ) -> Outcome:
        """Patch an object and return all of the answer."""
        served = self.served(kind)
        where = namespace if served.kind.namespaced else ""
        return asyncio.run(self.api.patch(served, where, name, Patch(type_, body), WriteOptions(track=False), subresource=subresource))

    def patch(self, kind: str, name: str, body: Any, **more: Any) -> Tree:
        """Patch an object."""
        return self.outcome_of_patch(kind, name, body, **more).obj

    def unpatched(self, kind: str, name: str, body: Any, **more: Any) -> list[str]:
        """Return the causes of a refused patch as ``field: text``."""
        with pytest.raises(ApiStatus) as problem:
            self.patch(kind, name, body, **more)
        return [f"{each['field']}: {each['message']}" for each in problem.value.details["causes"]]

    def delete(self, kind: str, name: str, namespace: str = NAMESPACE, options: DeleteOptions | None = None) -> Outcome:
        """Delete an object."""
        served = self.served(kind)
        return asyncio.run(self.api.delete(served, namespace if served.kind.namespaced else "", name, options or DeleteOptions()))

    def get(self, kind: str, name: str, *, group: str | None = None, namespace: str = NAMESPACE) -> Tree:
        """Read an object."""
        served = self.served(kind, group)
        record = self.api.get(served, namespace if served.kind.namespaced else "", name)
        return served.from_storage(record.obj)

    def pod(self, *, name: str = "x", container: Tree | None = None, meta: Tree | None = None, **spec: Any) -> Tree:
        """Create a pod of one container."""
        return self.create("Pod", name=name, meta=meta, spec={"containers": [{"name": "c", "image": "i", **(container or {})}], **spec})

    def pod_causes(self, container: Tree | None = None, **spec: Any) -> list[str]:
        """Return why a pod of one container is refused."""
        return self.causes("Pod", spec={"containers": [{"name": "c", "image": "i", **(container or {})}], **spec})


@pytest.fixture
def desk() -> Desk:
    """Return a fresh server."""
    return Desk()
