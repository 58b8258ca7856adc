"""Invariants: what must hold at every observable state, and what must hold once a cluster has come to rest."""

from kubemini.testing.invariants.base import Checker, Invariant, InvariantViolation, StoreView, View

__all__ = ["Checker", "Invariant", "InvariantViolation", "StoreView", "View"]
