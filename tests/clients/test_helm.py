"""The real helm against a served cluster: a chart is installed, upgraded, rolled back and uninstalled."""

from pathlib import Path

import pytest

from tests.clients.conftest import Command

FILES = {
    "Chart.yaml": "apiVersion: v2\nname: web\nversion: 0.1.0\n",
    "values.yaml": "replicas: 1\n",
    "templates/deployment.yaml": """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: nginx}]
""",
}


@pytest.fixture
def chart(tmp_path: Path) -> str:
    """A small chart with one Deployment."""
    for name, text in FILES.items():
        path = tmp_path / "chart" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(tmp_path / "chart")


def test_release_lives_and_dies(helm: Command, kubectl: Command, chart: str) -> None:
    """Helm waits for what it installs, keeps its history in secrets, and takes everything away again."""
    helm("install", "web", chart, "--wait", "--timeout", "30s")
    helm("upgrade", "web", chart, "--set", "replicas=3", "--wait", "--timeout", "30s")
    assert kubectl.json("get", "deployment", "web")["status"]["readyReplicas"] == 3
    assert [release["status"] for release in helm.json("history", "web")] == ["superseded", "deployed"]
    helm("rollback", "web", "1", "--wait", "--timeout", "30s")
    assert kubectl.json("get", "deployment", "web")["spec"]["replicas"] == 1
    helm("uninstall", "web", "--wait", "--timeout", "30s")
    assert kubectl.json("get", "deployments,secrets")["items"] == []
