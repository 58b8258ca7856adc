"""The table of the built-in subresources beside status and scale."""

from __future__ import annotations

from kubemini.runtime.env import Env
from kubemini.server.subresources.approval import ApprovalSubresource
from kubemini.server.subresources.base import Subresources
from kubemini.server.subresources.binding import BindingSubresource
from kubemini.server.subresources.ephemeral import EphemeralContainersSubresource, ResizeSubresource
from kubemini.server.subresources.eviction import EvictionSubresource
from kubemini.server.subresources.finalize import FinalizeSubresource
from kubemini.server.subresources.token import TokenIssuer, TokenSubresource


def builtin_subresources(env: Env) -> Subresources:
    """Return the subresources of pods, namespaces, service accounts and signing requests; tokens are issued with a key of `env`."""
    table = Subresources()
    for behaviour in (BindingSubresource(), EvictionSubresource(), EphemeralContainersSubresource(), ResizeSubresource()):
        table.add("pods", behaviour)
    table.add("certificatesigningrequests.certificates.k8s.io", ApprovalSubresource())
    table.add("namespaces", FinalizeSubresource())
    table.add("serviceaccounts", TokenSubresource(TokenIssuer(env)))
    return table
