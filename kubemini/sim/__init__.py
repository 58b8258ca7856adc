"""Deterministic simulation: the event loop in virtual time, faults and traces."""
