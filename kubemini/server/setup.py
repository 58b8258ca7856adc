"""Puts an `ApiServer` together: store, kinds, built-in admission, subresources, field managers."""

from __future__ import annotations

from functools import lru_cache

from kubemini.machinery.schema.builtin import BuiltinSchemas
from kubemini.runtime.env import Env
from kubemini.server.admission import Chain
from kubemini.server.kinds.crd import CustomKinds
from kubemini.server.managing import Managing
from kubemini.server.plugins import builtin_plugins
from kubemini.server.policies.plugin import MutatingPolicies, ValidatingPolicies
from kubemini.server.registry import Registry
from kubemini.server.requests import ApiServer
from kubemini.server.subresources.builtin import builtin_subresources
from kubemini.store import Store


def api_server(store: Store, registry: Registry, env: Env, types: BuiltinSchemas) -> ApiServer:
    """Return a server with every built-in plugin and subresource, whose registry follows the custom resource definitions in the store."""
    CustomKinds(registry, store)
    managing = _managing(types)
    chain = Chain([*builtin_plugins(), MutatingPolicies(store, registry, managing.shape), ValidatingPolicies(store, registry)])
    return ApiServer(store=store, registry=registry, env=env, chain=chain, subresources=builtin_subresources(env), managing=managing)


@lru_cache(maxsize=8)
def _managing(types: BuiltinSchemas) -> Managing:
    """Return the field managers of one version: they hold nothing of a cluster, and what they compile is the same for all."""
    return Managing(types)
