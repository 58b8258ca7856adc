"""Options of requests, as values: who asks, and how."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubemini.api.trees import Tree
from kubemini.store import Record


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated user. `agent` is the User-Agent, from which an unnamed field manager is taken."""

    user: str = "system:admin"
    groups: tuple[str, ...] = ("system:masters", "system:authenticated")
    agent: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    uid: str = ""

    @property
    def manager(self) -> str:
        """The default field manager: the agent up to its first slash, at most 128 characters."""
        return (self.agent.partition("/")[0] or "unknown")[:128]


ADMIN = Caller()


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Create, update and patch options. `track` off skips managedFields (in-process controllers)."""

    caller: Caller = ADMIN
    field_manager: str = ""
    field_validation: str = "Warn"
    dry_run: bool = False
    force: bool = False
    track: bool = True
    duplicates: tuple[str, ...] = ()
    """Texts about duplicate fields that the parser found in the body."""
    canonical: bool = False
    """The writer vouches that its objects are as decoding would leave them, so that nobody need look (in debug mode somebody does)."""

    @property
    def manager(self) -> str:
        """The field manager of the write."""
        return self.field_manager or self.caller.manager


DEFAULT_WRITE = WriteOptions()


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Delete options; None and "" mean not given."""

    caller: Caller = ADMIN
    grace: int | None = None
    propagation: str = ""
    orphan: bool | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


DEFAULT_DELETE = DeleteOptions()


@dataclass(frozen=True, slots=True)
class ListOptions:
    """List and watch options, as the query gives them."""

    label_selector: str = ""
    field_selector: str = ""
    limit: int = 0
    continue_token: str = ""
    resource_version: str = ""
    resource_version_match: str = ""
    send_initial_events: bool | None = None
    bookmarks: bool = False
    timeout: float | None = None


EVERYTHING = ListOptions()


@dataclass(slots=True)
class Outcome:
    """What a write came to: the object in the requested version, the committed record (None on a dry run), and how to answer."""

    obj: Tree
    record: Record | None = None
    code: int = 200
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a list: records of the storage version, or trees of a virtual kind."""

    records: list[Record]
    revision: int
    continue_token: str = ""
    remaining: int | None = None


@dataclass(frozen=True, slots=True)
class Patch:
    """A patch: `type` is json, merge, strategic or apply; `body` what was decoded."""

    type: str
    body: Any
