"""CustomResourceDefinitions: the kind itself, and the kinds that established ones bring.

`crd_kind` is what the registry serves as ``customresourcedefinitions``; `kinds_of` turns a definition into kinds; `CustomKinds` keeps a registry in step
with the definitions in the store. Conditions are the business of the controller (`kubemini.controllers.customresources`).
"""

from kubemini.server.kinds.crd.serving import CustomKinds, is_established, kinds_of
from kubemini.server.kinds.crd.strategy import CrdStrategy, crd_kind

__all__ = ["CrdStrategy", "CustomKinds", "crd_kind", "is_established", "kinds_of"]
