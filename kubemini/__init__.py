"""kubemini: a whole Kubernetes control plane for multi-host ML, in one Python process, without a cluster."""

__version__ = "0.1.0"
