"""Server-side apply and field managers: who owns which field of an object, and how applied configurations merge.

`track_update` keeps metadata.managedFields on every plain write, `apply` merges an applied configuration. Both take an
`ApplySchema`: `BuiltinApplySchema` for built-in kinds, `StructuralApplySchema` for custom resources.

The parts: `sets` (sets of fields and their algebra), `paths` (their elements), `shapes` (what a schema says; compiled by `builtin` and
`structural`), `owning` (sets of values and of changes), `merging`, `pruning`, `managers` (entries and conflicts), `updating` (the two verbs).
"""

from kubemini.machinery.apply.builtin import BuiltinApplySchema, BuiltinShapes
from kubemini.machinery.apply.managers import same_but_times
from kubemini.machinery.apply.shapes import ApplySchema, Shape
from kubemini.machinery.apply.structural import StructuralApplySchema, StructuralShapes, deduced_root
from kubemini.machinery.apply.updating import NOTHING_RESET, Applied, Reset, apply, check_config, track_update

__all__ = [
    "NOTHING_RESET",
    "Applied",
    "ApplySchema",
    "BuiltinApplySchema",
    "BuiltinShapes",
    "Reset",
    "Shape",
    "StructuralApplySchema",
    "StructuralShapes",
    "apply",
    "check_config",
    "deduced_root",
    "same_but_times",
    "track_update",
]
