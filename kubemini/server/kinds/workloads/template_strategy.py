"""What the kinds with a pod template have in common."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.errors import forbidden, not_supported
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.core.pod_spec_defaults import default_pod_template
from kubemini.server.kinds.core.pod_spec_validation import validate_pod_template
from kubemini.server.kinds.core.pod_warnings import pod_warnings
from kubemini.server.kinds.workloads.rules import name_advice
from kubemini.server.strategy import Strategy, WriteContext


class TemplateStrategy(Strategy):
    """A kind whose `template_path` leads to a pod template: defaults, warnings, generation and a status."""

    has_status = True
    has_generation = True
    template_path: tuple[str, ...] = ("spec", "template")
    advises_on_name = True
    """Whether a name that is no DNS label gets a warning."""

    def template(self, obj: Tree) -> Tree | None:
        """Return the pod template of an object, None without one."""
        here: Tree | None = obj
        for key in self.template_path:
            here = here.get(key) if here else None
        return here

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Fill the defaults of the pod template."""
        template = self.template(obj)
        if template is None:
            return obj
        filled = default_pod_template(template)
        return obj if filled is template else _with(obj, self.template_path, filled)

    def warnings(self, new: Tree, old: Tree | None, ctx: WriteContext) -> list[str]:
        """Return the advice on a new object's name, and on the template where the spec is new or changed."""
        found = list(name_advice(new)) if old is None and self.advises_on_name else []
        if old is not None and not self.spec_changed(new, old):
            return found
        found += self.spec_warnings(new)
        template = self.template(new)
        if template is not None:
            found += pod_warnings(template, template=True, path=f"{'.'.join(self.template_path)}.spec")
        return found

    def spec_warnings(self, obj: Tree) -> list[str]:
        """Return the advice on the spec itself, for a new or changed one."""
        return []


def _with(obj: Tree, path: tuple[str, ...], value: Tree) -> Tree:
    head, *rest = path
    return {**obj, head: _with(obj[head], tuple(rest), value) if rest else value}


def serving_template(template: Tree, path: str, owner: str) -> Errors:
    """Check a pod template whose pods run for ever; `owner` is the kind as upstream's text names it."""
    yield from validate_pod_template(template, path)
    yield from always_restarts(template, path, owner)


def always_restarts(template: Tree, path: str, owner: str) -> Errors:
    """Refuse a template whose pods would end by themselves."""
    pod = template.get("spec") or {}
    policy = pod.get("restartPolicy") or ""
    if policy != "Always":
        yield not_supported(f"{path}.spec.restartPolicy", policy, ("Always",))
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden(f"{path}.spec.activeDeadlineSeconds", f"activeDeadlineSeconds in {owner} is not Supported")
