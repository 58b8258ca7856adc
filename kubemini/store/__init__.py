"""The watchable store: one revision counter, ordered keys, an event log per table, watch cursors.

Modelled on etcd's multi-version store as the API server uses it: every commit takes the next revision, a watch started at
revision R sees exactly the commits after R, and history is bounded by compaction. It knows nothing of HTTP or of kinds: a
table holds JSON trees under string keys, and the only field it reads or writes is ``metadata.resourceVersion``.
"""

from kubemini.store.errors import Compacted, FutureRevision, KeyExists, KeyMissing, RevisionMismatch, StoreError
from kubemini.store.expiring import ExpiringTable
from kubemini.store.log import Change
from kubemini.store.record import Record
from kubemini.store.store import Page, Store, Table
from kubemini.store.watch import Watch, WatchEvent

__all__ = [
    "Change",
    "Compacted",
    "ExpiringTable",
    "FutureRevision",
    "KeyExists",
    "KeyMissing",
    "Page",
    "Record",
    "RevisionMismatch",
    "Store",
    "StoreError",
    "Table",
    "Watch",
    "WatchEvent",
]
