"""The function libraries of Kubernetes' CEL environment; importing the package declares them all."""

from kubemini.machinery.cel.library import formats, lists, network, operators, optionals, quantities, semver, strings, timing, urls

__all__ = ["formats", "lists", "network", "operators", "optionals", "quantities", "semver", "strings", "timing", "urls"]
