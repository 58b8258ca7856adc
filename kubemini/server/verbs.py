"""The verbs as subresources use them: whoever evicts a pod or binds it reads and writes like everybody else."""

from __future__ import annotations

from abc import ABC, abstractmethod

from kubemini.api.trees import Tree
from kubemini.server.options import DEFAULT_DELETE, DEFAULT_WRITE, DeleteOptions, Outcome, WriteOptions
from kubemini.server.reading import Reading
from kubemini.server.registry import Served
from kubemini.server.strategy import WriteContext


class Verbs(Reading, ABC):
    """What `kubemini.server.writing` and `kubemini.server.deleting` do."""

    @abstractmethod
    def context(self, options: WriteOptions) -> WriteContext:
        """Return what strategies and admission may know of a request."""

    @abstractmethod
    async def update(
        self, served: Served, namespace: str, name: str, body: Tree, options: WriteOptions = DEFAULT_WRITE, *, subresource: str = ""
    ) -> Outcome:
        """Replace an object, or one of its object-shaped subresources."""

    @abstractmethod
    async def delete(self, served: Served, namespace: str, name: str, options: DeleteOptions = DEFAULT_DELETE) -> Outcome:
        """Delete an object, or begin to."""
