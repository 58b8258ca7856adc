"""The one error of this package: a pass that cannot go on, to be tried again with back-off."""

from __future__ import annotations

from kubemini.machinery.errors import InternalError


class Stalled(InternalError):
    """What a pass stands on is broken or unknown (a label that is no number, a node that is gone); the message says what."""
