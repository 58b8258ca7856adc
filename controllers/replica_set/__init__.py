"""ReplicaSet and ReplicationController: so many pods of one template. Mirrors kube-controller-manager's replicaset and replication controllers (Kubernetes 1.36).

`pods`, `claiming`, `writing` and `template_hash` are shared with the controllers of Deployments and DaemonSets.
"""

from __future__ import annotations

from kubemini.api.resources import REPLICA_SETS, REPLICATION_CONTROLLERS
from kubemini.controllers.replica_set.controller import ReplicaSetController
from kubemini.runtime.controller import Controller
from kubemini.runtime.settings import Settings


def create(settings: Settings) -> list[Controller]:
    """Build both loops."""
    return [
        ReplicaSetController("replicaset", "replicaset-controller", REPLICA_SETS),
        ReplicaSetController("replicationcontroller", "replication-controller", REPLICATION_CONTROLLERS),
    ]
