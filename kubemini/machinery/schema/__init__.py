"""Schemas: what the fields of a kind are, and decoding, pruning, defaulting and validation by them."""
