"""``spec.podFailurePolicy``: what a failed pod means for its Job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kubemini.api.trees import Tree


class Match(NamedTuple):
    """The first rule that a failed pod matches: its action, and the message when the action is FailJob."""

    action: str
    message: str


COUNT = Match("Count", "")


def match(policy: Tree | None, pod: Tree) -> Match:
    """Return what the policy says of a pod in phase Failed; without a policy or a matching rule the failure counts."""
    for position, rule in enumerate((policy or {}).get("rules") or ()):
        message = ""
        if rule.get("onExitCodes"):
            message = _by_exit_code(rule["onExitCodes"], pod)
        elif rule.get("onPodConditions"):
            message = _by_condition(rule["onPodConditions"], pod)
        if message:
            action = rule["action"]
            return Match(action, f"{message} matching FailJob rule at index {position}" if action == "FailJob" else "")
    return COUNT


def _by_exit_code(wanted: Tree, pod: Tree) -> str:
    for name, code in _exit_codes(pod):
        if wanted.get("containerName") and wanted["containerName"] != name:
            continue
        listed = code in wanted["values"]
        if listed == (wanted["operator"] == "In"):
            return f"Container {name} for pod {_name(pod)} failed with exit code {code}"
    return ""


def _exit_codes(pod: Tree) -> Iterator[tuple[str, int]]:
    status = pod.get("status") or {}
    for group in ("containerStatuses", "initContainerStatuses"):
        for container in status.get(group) or ():
            ended = (container.get("state") or {}).get("terminated")
            if ended and ended.get("exitCode"):
                yield container["name"], ended["exitCode"]


def _by_condition(patterns: list[Tree], pod: Tree) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if any(condition["type"] == pattern["type"] and condition["status"] == pattern.get("status", "True") for pattern in patterns):
            return f"Pod {_name(pod)} has condition {condition['type']}"
    return ""


def _name(pod: Tree) -> str:
    meta = pod["metadata"]
    return f"{meta['namespace']}/{meta['name']}"
