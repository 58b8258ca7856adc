"""Built-in admission: the plugins that a kube-apiserver runs by default, in its order."""

from __future__ import annotations

from kubemini.server.admission import Admission
from kubemini.server.plugins.limit_ranger import LimitRanger
from kubemini.server.plugins.namespace_lifecycle import NamespaceLifecycle
from kubemini.server.plugins.node_taint import TaintNodesByCondition
from kubemini.server.plugins.pod_security import PodSecurity
from kubemini.server.plugins.priority import Priority
from kubemini.server.plugins.resource_quota import ResourceQuota
from kubemini.server.plugins.runtime_class import RuntimeClass
from kubemini.server.plugins.service_account import ServiceAccount
from kubemini.server.plugins.storage import DefaultIngressClass, DefaultStorageClass, StorageObjectInUseProtection
from kubemini.server.plugins.tolerations import DefaultTolerationSeconds


def builtin_plugins() -> list[Admission]:
    """Return fresh plugins in upstream's order. Quota comes last: whatever changes or refuses an object has had its say."""
    return [
        NamespaceLifecycle(),
        LimitRanger(),
        ServiceAccount(),
        TaintNodesByCondition(),
        PodSecurity(),
        Priority(),
        DefaultTolerationSeconds(),
        DefaultStorageClass(),
        StorageObjectInUseProtection(),
        RuntimeClass(),
        DefaultIngressClass(),
        ResourceQuota(),
    ]
