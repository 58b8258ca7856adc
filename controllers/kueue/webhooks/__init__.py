"""Kueue's admission: defaults and refusals of its own kinds and of the jobs that it manages. Pure functions."""
