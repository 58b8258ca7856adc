"""What a test wants to hear about a ProvisioningRequest.

Read from annotations of the request, else its parameters, else annotations of its pods' templates:

| key | meaning |
| --- | --- |
| ``kubemini.dev/provisioning`` | ``provisioned``, ``failed``, ``booking-expired``, ``capacity-revoked`` or ``pending``; of a list (``failed,provisioned``) each try of the request takes its own, and the last one stays |
| ``kubemini.dev/provisioning-after`` | duration from acceptance to that |
| ``kubemini.dev/provisioning-lasts`` | duration from there to expiry (``provisioned``, ``booking-expired``) or revocation |
| ``kubemini.dev/provisioning-details`` | ``status.provisioningClassDetails``: ``Name=value,Other=value`` |

Nothing said of the outcome = whether there is room decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.machinery.duration import asked

KEY = "kubemini.dev/provisioning"
PROVISIONED, FAILED, EXPIRED, REVOKED, PENDING = "provisioned", "failed", "booking-expired", "capacity-revoked", "pending"
OUTCOMES = (PROVISIONED, FAILED, EXPIRED, REVOKED, PENDING)


class BadScript(ValueError):
    """What a request is told to answer cannot be read; the message names the key and the mend."""


@dataclass(frozen=True, slots=True)
class Script:
    """`outcome` "" = as there is room. Times in seconds, None = not said."""

    outcome: str = ""
    after: float | None = None
    lasts: float | None = None
    details: Mapping[str, str] | None = None


def script_of(request: Tree, templates: Sequence[Tree]) -> Script:
    """Return what a request is to be answered; `templates` are the PodTemplates that it names. Raise `BadScript`."""
    sources = [request["metadata"].get("annotations"), request["spec"].get("parameters")]
    sources += [(each["template"].get("metadata") or {}).get("annotations") for each in templates]

    def said(key: str) -> str | None:
        return next((source[key] for source in sources if source and key in source), None)

    return Script(
        _outcome(said(KEY), _try_of(request)),
        _seconds(f"{KEY}-after", said(f"{KEY}-after")),
        _seconds(f"{KEY}-lasts", said(f"{KEY}-lasts")),
        _details(said(f"{KEY}-details")),
    )


def _try_of(request: Tree) -> int:
    """Return which try a request is, from 0: Kueue counts them at the end of its names."""
    number = request["metadata"]["name"].rpartition("-")[2]
    return max(0, int(number) - 1) if number.isascii() and number.isdigit() else 0


def _outcome(text: str | None, attempt: int) -> str:
    if text is None:
        return ""
    outcomes = [each.strip() for each in text.split(",")]
    wrong = [each for each in outcomes if each not in OUTCOMES]
    if wrong:
        raise BadScript(f'{KEY}: "{wrong[0]}" must be one of {", ".join(OUTCOMES)}')
    return outcomes[min(attempt, len(outcomes) - 1)]


def _seconds(key: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return asked(key, text)
    except ValueError as wrong:
        raise BadScript(str(wrong)) from None


def _details(text: str | None) -> Mapping[str, str] | None:
    if text is None:
        return None
    found: dict[str, str] = {}
    for each in text.split(","):
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise BadScript(f'{KEY}-details: "{each}" must be NAME=VALUE')
        found[name.strip()] = value.strip()
    return found
