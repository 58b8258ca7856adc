"""A server of workload kinds alone: no controllers, no admission, time stands still."""

import asyncio
from typing import Any

import yaml

from kubemini.api.trees import Tree
from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.runtime.env import EPOCH, Env
from kubemini.server.admission import Chain
from kubemini.server.kinds.core.pod import PodStrategy
from kubemini.server.kinds.workloads import workload_kinds
from kubemini.server.managing import Managing
from kubemini.server.options import DeleteOptions, Outcome, Patch, WriteOptions
from kubemini.server.registry import Kind, KindVersion, Registry, Served
from kubemini.server.requests import ApiServer
from kubemini.server.strategy import Strategy
from kubemini.server.subresources.builtin import builtin_subresources
from kubemini.store import Store

SCHEMAS = BuiltinSchemas()
NAMESPACE = "default"


class Bench:
    """Writes to a fresh API server, and tells what it answered."""

    WRITE = WriteOptions()

    def __init__(self) -> None:
        self.now = EPOCH
        self.env = Env(seed=7, clock=lambda: self.now)
        accounts = Kind("", "ServiceAccount", "serviceaccounts", (KindVersion("v1", SCHEMAS.codec("", "v1", "ServiceAccount")),), Strategy())
        pods = Kind("", "Pod", "pods", (KindVersion("v1", SCHEMAS.codec("", "v1", "Pod")),), PodStrategy())
        nodes = Kind("", "Node", "nodes", (KindVersion("v1", SCHEMAS.codec("", "v1", "Node")),), Strategy(), namespaced=False)
        self.registry = Registry([*workload_kinds(SCHEMAS.codec), pods, accounts, nodes])
        self.api = ApiServer(
            store=Store(),
            registry=self.registry,
            env=self.env,
            chain=Chain(),
            subresources=builtin_subresources(self.env),
            managing=Managing(SCHEMAS),
        )

    def served(self, kind: str, api_version: str = "") -> Served:
        """Return a kind by its name, in its preferred version unless another is named."""
        if api_version:
            found = self.registry.by_kind(api_version, kind)
            assert found is not None
            return found
        return self.registry.preferred(next(each for each in self.registry if each.kind == kind))

    def create(self, manifest: str | Tree, *, options: WriteOptions | None = None) -> Tree:
        """Create an object from YAML or a tree."""
        obj: Tree = yaml.safe_load(manifest) if isinstance(manifest, str) else manifest
        served = self.served(obj["kind"], obj.get("apiVersion", ""))
        namespace = NAMESPACE if served.kind.namespaced else ""
        return asyncio.run(self.api.create(served, namespace, obj, options or WriteOptions())).obj

    def patch(self, kind: str, name: str, body: Any, *, type_: str = "merge", subresource: str = "") -> Tree:
        """Patch an object or subresource."""
        served = self.served(kind)
        return asyncio.run(self.api.patch(served, NAMESPACE, name, Patch(type_, body), subresource=subresource)).obj

    def act(self, kind: str, name: str, subresource: str, body: Tree) -> Outcome:
        """Post to a subresource."""
        return asyncio.run(self.api.act(self.served(kind), NAMESPACE, name, subresource, body))

    def get(self, kind: str, name: str, api_version: str = "") -> Tree:
        """Read an object."""
        served = self.served(kind, api_version)
        return served.from_storage(self.api.get(served, NAMESPACE if served.kind.namespaced else "", name).obj)

    def delete(self, kind: str, name: str, options: DeleteOptions | None = None) -> Outcome:
        """Delete an object."""
        return asyncio.run(self.api.delete(self.served(kind), NAMESPACE, name, options or DeleteOptions()))
