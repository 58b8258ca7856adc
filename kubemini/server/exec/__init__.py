"""What `kubectl exec` finds in a simulated container: its environment, its files, and a small shell."""

from kubemini.server.exec.container import Inside
from kubemini.server.exec.disk import Disks
from kubemini.server.exec.shell import Lookup, NotExecutable, Shell

__all__ = ["Disks", "Inside", "Lookup", "NotExecutable", "Shell"]
