"""What `kubectl exec` finds in a simulated container: its environment, its files, and a small shell."""

from kubemini.server.exec.container import Inside
from kubemini.server.exec.shell import NotExecutable, Shell

__all__ = ["Inside", "NotExecutable", "Shell"]
