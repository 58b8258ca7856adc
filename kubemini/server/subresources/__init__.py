"""Subresources: what is reached under an object's name beside the object itself.

*Object* subresources (status, finalize, ephemeralcontainers, resize, …) take the object's own shape and change a part of it; *action*
subresources (eviction, binding, token, …) take another kind and do something. `scale` shows part of any scalable kind in one form.
"""

from kubemini.server.subresources.base import STATUS, ActionSubresource, ObjectSubresource, StatusSubresource, Subresources
from kubemini.server.subresources.scale import ScaleSubresource

__all__ = ["STATUS", "ActionSubresource", "ObjectSubresource", "ScaleSubresource", "StatusSubresource", "Subresources"]
