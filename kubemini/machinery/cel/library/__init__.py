"""The function libraries of Kubernetes' CEL environment; importing the package declares them all."""

from kubemini.machinery.cel.library import (
    authorization,
    formats,
    lists,
    network,
    operators,
    optionals,
    patching,
    quantities,
    semver,
    strings,
    timing,
    urls,
)

__all__ = ["authorization", "formats", "lists", "network", "operators", "optionals", "patching", "quantities", "semver", "strings", "timing", "urls"]
