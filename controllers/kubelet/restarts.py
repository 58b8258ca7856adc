"""Which containers run again after an exit, and when. Pure functions. Mirrors the kubelet's restart policies (1.36) and its crash-loop back-off."""

from __future__ import annotations

from collections.abc import Sequence

from kubemini.api.trees import Tree

BASE, LIMIT = 10, 300
"""Seconds of the back-off before the second restart, and at most."""
FORGIVEN_AFTER = 600.0
"""A container that ran so long starts over with its back-off."""


def restarts_again(container: Tree, policy: str, exit_code: int) -> bool:
    """Tell whether a container runs again after an exit: by its own rules, else its own policy, else the pod's."""
    for rule in container.get("restartPolicyRules") or ():
        codes = rule.get("exitCodes") or {}
        listed = exit_code in (codes.get("values") or ())
        if listed == (codes.get("operator") == "In"):
            return bool(rule.get("action") == "Restart")
    policy = container.get("restartPolicy") or policy
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def restarting(containers: Sequence[Tree], policy: str, exit_code: int) -> list[str]:
    """Return the names of the containers that run again."""
    return [container["name"] for container in containers if restarts_again(container, policy, exit_code)]


def delay(level: int) -> int:
    """Return the seconds before the restart after `level` earlier ones: the first is immediate, then 10 s doubling to 300 s.

    >>> [delay(level) for level in range(8)]
    [0, 10, 20, 40, 80, 160, 300, 300]
    """
    return 0 if level <= 0 else min(BASE << min(level - 1, 10), LIMIT)
