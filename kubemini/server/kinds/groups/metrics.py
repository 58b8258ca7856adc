"""metrics.k8s.io: what pods and nodes use, as far as a simulated cluster can tell: what their annotations say, else what they ask for."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree
from kubemini.machinery import quantity
from kubemini.machinery.errors import FieldError
from kubemini.machinery.pod_usage import container_usage
from kubemini.machinery.schema.contract import Decoded
from kubemini.runtime.env import to_stamp
from kubemini.server.registry import Virtual
from kubemini.server.strategy import Column, Table, WriteContext

WINDOW = "15s"
_IDLE = {"cpu": "1m", "memory": "2Mi"}
_QUANTITY: Tree = {"type": "string", "description": "A resource amount."}


def _usage(pod: Tree, container: Tree) -> Tree:
    """Return what a container uses: what the pod's annotations say, else its requests, or next to nothing."""
    requests = (container.get("resources") or {}).get("requests") or {}
    found: Tree = {}
    for name, idle in _IDLE.items():
        told = container_usage(pod, container.get("name", ""), name)
        found[name] = requests.get(name, idle) if told is None else quantity.shown(told, "BinarySI" if name == "memory" else "DecimalSI")
    return found


def pod_metrics(pod: Tree, now: float) -> Tree | None:
    """Return the metrics of a running pod; None for one that does not run."""
    if (pod.get("status") or {}).get("phase") != "Running":
        return None
    metadata = pod["metadata"]
    kept = {key: metadata[key] for key in ("name", "namespace", "labels", "creationTimestamp") if key in metadata}
    containers = [{"name": each.get("name", ""), "usage": _usage(pod, each)} for each in pod["spec"].get("containers") or ()]
    return {
        "kind": "PodMetrics",
        "apiVersion": "metrics.k8s.io/v1beta1",
        "metadata": kept,
        "timestamp": to_stamp(now),
        "window": WINDOW,
        "containers": containers,
    }


class PodMetrics(Virtual):
    """Metrics of pods."""

    def get(self, namespace: str, name: str, ctx: WriteContext) -> Tree | None:
        """Return the metrics of one pod."""
        pod = ctx.reader.get("pods", namespace, name)
        return None if pod is None else pod_metrics(pod, ctx.env.now())

    def list(self, namespace: str, ctx: WriteContext) -> Sequence[Tree]:
        """Return the metrics of all running pods."""
        now = ctx.env.now()
        found = (pod_metrics(pod, now) for pod in ctx.reader.list("pods", namespace))
        return [each for each in found if each is not None]


class NodeMetrics(Virtual):
    """Metrics of nodes: the sums over their pods."""

    def get(self, namespace: str, name: str, ctx: WriteContext) -> Tree | None:
        """Return the metrics of one node."""
        node = ctx.reader.get("nodes", "", name)
        return None if node is None else self._of(node, self._sums(ctx), ctx.env.now())

    def list(self, namespace: str, ctx: WriteContext) -> Sequence[Tree]:
        """Return the metrics of all nodes."""
        sums, now = self._sums(ctx), ctx.env.now()
        return [self._of(node, sums, now) for node in ctx.reader.list("nodes")]

    def _sums(self, ctx: WriteContext) -> dict[str, dict[str, int]]:
        sums: dict[str, dict[str, int]] = {}
        for pod in ctx.reader.list("pods"):
            node = pod["spec"].get("nodeName")
            if not node or (pod.get("status") or {}).get("phase") != "Running":
                continue
            total = sums.setdefault(node, dict.fromkeys(_IDLE, 0))
            for container in pod["spec"].get("containers") or ():
                for name, value in _usage(pod, container).items():
                    total[name] += quantity.nano(value)
        return sums

    def _of(self, node: Tree, sums: dict[str, dict[str, int]], now: float) -> Tree:
        metadata = node["metadata"]
        total = sums.get(metadata["name"]) or {name: quantity.nano(idle) for name, idle in _IDLE.items()}
        return {
            "kind": "NodeMetrics",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {key: metadata[key] for key in ("name", "labels", "creationTimestamp") if key in metadata},
            "timestamp": to_stamp(now),
            "window": WINDOW,
            "usage": {"cpu": quantity.shown(total["cpu"]), "memory": quantity.shown(total["memory"], "BinarySI")},
        }


class MetricsCodec:
    """The schema of the two kinds, which only ever go out."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def decode(self, tree: Tree, *, validation: str = "Warn", duplicates: Sequence[str] = (), stored: Tree | None = None) -> Decoded:
        """Take a tree as it is."""
        return Decoded(tree)

    def validate(self, new: Tree, old: Tree | None = None) -> list[FieldError]:
        """Find nothing wrong."""
        return []

    def openapi(self) -> Tree:
        """Return the schema."""
        usage: Tree = {"type": "object", "additionalProperties": _QUANTITY}
        container: Tree = {"type": "object", "properties": {"name": {"type": "string"}, "usage": usage}}
        own: Tree = {"containers": {"type": "array", "items": container}} if self.kind == "PodMetrics" else {"usage": usage}
        text: Tree = {"type": "string"}
        return {
            "type": "object",
            "properties": {"apiVersion": text, "kind": text, "metadata": {"type": "object"}, "timestamp": text, "window": text, **own},
        }


def _row(obj: Tree, _now: float) -> list[object]:
    parts = [each.get("usage") or {} for each in obj.get("containers") or ()] or [obj.get("usage") or {}]
    sums = {name: sum(quantity.nano(each.get(name, "0")) for each in parts) for name in _IDLE}
    return [obj["metadata"]["name"], quantity.shown(sums["cpu"]), quantity.shown(sums["memory"], "BinarySI"), obj.get("window", "")]


METRICS_TABLE = Table((Column("Name", "string", "name"), Column("cpu"), Column("memory"), Column("Window")), _row)
