"""Types of single fields: sized integers, quantities, times, names, and references to built-in types."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import InstanceOf, StringConstraints

from kubemini.api.embedded import QUANTITY
from kubemini.api.meta.markers import BuiltIn, Format, IntOrStringType

Int32: TypeAlias = Annotated[int, Format("int32")]
Int64: TypeAlias = Annotated[int, Format("int64")]
Time: TypeAlias = Annotated[str, Format("date-time")]
"""RFC 3339 text."""

Quantity: TypeAlias = Annotated[int | Annotated[str, StringConstraints(pattern=QUANTITY)], IntOrStringType(QUANTITY)]
"""A resource quantity as written: an integer or a text such as ``500m`` or ``2Gi``."""
IntOrString: TypeAlias = Annotated[int | str, IntOrStringType()]
"""An integer, or a text (a percentage or a name)."""

DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
LABEL_KEY = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"

# Built-in types stay trees, and the very same trees: `InstanceOf` checks and does not copy, so work that is memoised by the
# identity of a template is done once for all who parse the object.
_Object: TypeAlias = InstanceOf[dict[str, Any]]

PodTemplateSpec: TypeAlias = Annotated[_Object, BuiltIn("io.k8s.api.core.v1.PodTemplateSpec")]
JobTemplateSpec: TypeAlias = Annotated[_Object, BuiltIn("io.k8s.api.batch.v1.JobTemplateSpec")]
PersistentVolumeClaim: TypeAlias = Annotated[_Object, BuiltIn("io.k8s.api.core.v1.PersistentVolumeClaim")]
Toleration: TypeAlias = Annotated[_Object, BuiltIn("io.k8s.api.core.v1.Toleration")]
Taint: TypeAlias = Annotated[_Object, BuiltIn("io.k8s.api.core.v1.Taint")]

__all__ = [
    "DNS_LABEL",
    "DNS_SUBDOMAIN",
    "LABEL_KEY",
    "QUANTITY",
    "Int32",
    "Int64",
    "IntOrString",
    "JobTemplateSpec",
    "PersistentVolumeClaim",
    "PodTemplateSpec",
    "Quantity",
    "Taint",
    "Time",
    "Toleration",
]
