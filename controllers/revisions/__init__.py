"""ControllerRevisions: the history of what a controller rolls out. Shared by the controllers that keep one.

A revision holds the part of a spec that makes pods, as a patch. Its name ends in a hash of that patch, so equal templates meet in one object. Mirrors
``pkg/controller/history`` (Kubernetes 1.36).
"""
