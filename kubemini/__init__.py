"""kubemini: a whole Kubernetes control plane for multi-host ML, in one Python process, without a cluster.

    from kubemini import Cluster, Faults, SimCluster, simulate

The names above are loaded when they are first asked for: ``import kubemini`` itself costs nothing. See docs/python.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kubemini.cluster import Cluster
    from kubemini.serving import ServedCluster
    from kubemini.sim.cluster import SimCluster, simulate
    from kubemini.sim.faults import Faults

__version__ = "0.1.0"
__all__ = ["Cluster", "Faults", "ServedCluster", "SimCluster", "simulate"]

_HOMES = {
    "Cluster": "kubemini.cluster",
    "Faults": "kubemini.sim.faults",
    "ServedCluster": "kubemini.serving",
    "SimCluster": "kubemini.sim.cluster",
    "simulate": "kubemini.sim.cluster",
}


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kubemini' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*globals(), *_HOMES])
