"""Names of ProvisioningRequests and of their PodTemplates, and what a name tells: which Workload, which check, which try."""

from __future__ import annotations

from hashlib import sha1

HASH_LENGTH = 5
LONGEST_PREFIX = 252 - HASH_LENGTH
MOST_DIGITS = 2
"""Tries of long names are found up to so many digits."""


def request_name(workload: str, check: str, attempt: int) -> str:
    """Return the name of the request of a try (from 1).

    >>> request_name("job-a-3a4f6", "prov", 2)
    'job-a-3a4f6-prov-2'
    """
    return shortened(f"{workload}-{check}-{attempt}")


def template_name(request: str, pod_set: str) -> str:
    """Return the name of the PodTemplate of a request's pod set.

    >>> template_name("job-a-3a4f6-prov-2", "main")
    'ppt-job-a-3a4f6-prov-2-main'
    """
    return shortened(f"ppt-{request}-{pod_set}")


def attempt_of(request: str, workload: str, check: str) -> int:
    """Return which try of a Workload and check a request is, 0 where it is none of theirs.

    Upstream does not know the requests of long names again, and makes and deletes them without end; here they are found by trying.

    >>> attempt_of("w-prov-12", "w", "prov"), attempt_of("w-prov-x-1", "w", "prov")
    (12, 0)
    """
    prefix = f"{workload}-{check}-"
    rest = request.removeprefix(prefix)
    if rest != request and rest.isascii() and rest.isdigit():
        return int(rest)
    if len(prefix) + MOST_DIGITS <= LONGEST_PREFIX:
        return 0
    return next((attempt for attempt in range(1, 10**MOST_DIGITS) if request_name(workload, check, attempt) == request), 0)


def shortened(name: str) -> str:
    """Return a name that is not too long for an object: the head and a hash of the whole where it is."""
    if len(name) <= LONGEST_PREFIX:
        return name
    return f"{name[:LONGEST_PREFIX]}-{sha1(name.encode(), usedforsecurity=False).hexdigest()[:HASH_LENGTH]}"
