"""Admission that users bring: which requests a webhook or policy is for, what it is told, and policies in CEL."""
