"""Between the template of a StatefulSet and the revisions that record it."""

from __future__ import annotations

from dataclasses import dataclass

from kubemini.api.trees import Tree
from kubemini.controllers.revisions import history
from kubemini.controllers.revisions.history import History
from kubemini.controllers.stateful_set.view import SetView
from kubemini.machinery.memo import by_identity


@by_identity()
def recorded(template: Tree) -> Tree:
    """Return the data of the revision of a template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


@by_identity()
def restored(data: Tree) -> Tree:
    """Return the template that a revision's data holds."""
    template: Tree = (data.get("spec") or {}).get("template") or {}
    return {key: value for key, value in template.items() if key != "$patch"}


@dataclass(slots=True)
class Chosen:
    """The two revisions of a pass, as they are stored."""

    current: Tree
    update: Tree
    collisions: int

    @property
    def current_name(self) -> str:
        """The name of the current revision."""
        name: str = self.current["metadata"]["name"]
        return name

    @property
    def update_name(self) -> str:
        """The name of the update revision."""
        name: str = self.update["metadata"]["name"]
        return name

    def template(self, owner: SetView, ordinal: int) -> tuple[Tree, str]:
        """Return the template, and the name of its revision, that a new pod of an ordinal is made from."""
        if owner.from_current(ordinal):
            if self.current["data"] is self.update["data"]:
                return owner.spec["template"], self.current_name
            return restored(self.current["data"]), self.current_name
        return owner.spec["template"], self.update_name


async def choose(owner: SetView, ordered: list[Tree], kept: History, *, semantic: bool) -> Chosen:
    """Find the revisions of a set, making or renumbering that of the live template where it must be. `ordered` are all of them, oldest first.

    `semantic` is the gate StatefulSetSemanticRevisionComparison: the newest revision stays where it only spells the same otherwise.
    """
    collisions = owner.status.get("collisionCount") or 0
    template = owner.spec["template"]
    number = history.next_number(ordered)
    labels = (template.get("metadata") or {}).get("labels") or {}
    wanted: Tree = {"metadata": {}, "data": recorded(template)}
    equal = [each for each in ordered if history.same(each, wanted)]
    if equal and history.same(ordered[-1], equal[-1]):
        update = ordered[-1]
    elif equal:
        update = await kept.renumber(equal[-1], number)
    elif semantic and ordered and history.alike(ordered[-1], wanted):
        update = ordered[-1]
    else:
        made = history.proposed(owner.tree, wanted["data"], labels=labels, number=number, collisions=collisions)
        update, collisions = await kept.create(made, collisions)
    named = owner.status.get("currentRevision")
    current = next((each for each in ordered if each["metadata"]["name"] == named), update)
    if current["metadata"]["name"] == update["metadata"]["name"]:
        current = update
    return Chosen(current, update, collisions)
