"""What `kubectl exec` finds in a simulated container: its environment, its files, and a small shell."""

from kubemini.server.exec.container import Inside
from kubemini.server.exec.shell import Lookup, NotExecutable, Shell

__all__ = ["Inside", "Lookup", "NotExecutable", "Shell"]
