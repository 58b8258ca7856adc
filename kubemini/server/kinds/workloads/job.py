"""batch/v1 Job: the strategy. The generated selector and labels, and the rules of writes.

Mirrors ``pkg/registry/batch/job`` and ``pkg/apis/batch/v1/defaults`` (1.36). The rules themselves stand in `job_spec`,
`job_update` and `job_status`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubemini.api.trees import Tree
from kubemini.machinery import names
from kubemini.machinery.errors import FieldError, invalid, required
from kubemini.machinery.labels import from_label_selector, validate_label_selector
from kubemini.server.kinds import tables
from kubemini.server.kinds.core.formats import Errors
from kubemini.server.kinds.workloads.job_spec import validate_job_spec
from kubemini.server.kinds.workloads.job_status import validate_job_status
from kubemini.server.kinds.workloads.job_update import ALL_OPEN, Openness, validate_job_update
from kubemini.server.kinds.workloads.rules import mismatch, template_labels
from kubemini.server.kinds.workloads.template_strategy import TemplateStrategy
from kubemini.server.strategy import WriteContext

JOB_NAME = "batch.kubernetes.io/job-name"
CONTROLLER_UID = "batch.kubernetes.io/controller-uid"
LEGACY_JOB_NAME = "job-name"
LEGACY_CONTROLLER_UID = "controller-uid"

_MANY_COMPLETIONS = 100_000
_MANY_PODS = 10_000


class JobStrategy(TemplateStrategy):
    """The rules of Jobs. `gates`: which parts of the pod template of a suspended Job feature gates open."""

    metadata_again = "before"
    table = tables.JOB
    orphans_by_default = True
    orphaning_advice = (
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them "
        "or set propagationPolicy=Orphan to suppress this warning"
    )
    unsupported_field = 'field label "{}" not supported for Job'
    fields: Mapping[str, Callable[[Tree], str]] = {"status.successful": lambda job: str((job.get("status") or {}).get("succeeded") or 0)}

    def __init__(self, gates: Openness = ALL_OPEN) -> None:
        super().__init__()
        self._gates = gates

    def default(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Fill the pod template, the counts, and the labels of a Job without any: it shares those of its template, until something changes the Job."""
        obj = super().default(obj, ctx)
        spec = obj.get("spec") or {}
        filled = default_job_spec(spec)
        obj = obj if filled is spec else {**obj, "spec": filled}
        return {**obj, "metadata": {**obj["metadata"], "labels": {**obj["metadata"]["labels"]}}} if _shares_labels(obj) else _labelled(obj)

    def initial_status(self, obj: Tree) -> Tree:
        """Return the empty status."""
        return {}

    def prepare_for_create(self, obj: Tree, ctx: WriteContext) -> Tree:
        """Generate selector and labels unless the Job brings its own. Labels that it shares with its template get those too."""
        if obj["spec"].get("manualSelector"):
            return obj
        made = _with_generated_selector(obj)
        return _labelled({**made, "metadata": {**made["metadata"], "labels": None}}) if _shares_labels(obj) else made

    def stored(self, obj: Tree) -> Tree:
        """Give a Job whose template had no labels either the generated ones."""
        return _labelled(obj)

    def validate_create(self, obj: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a new Job."""
        return list(_job(obj))

    def validate_update(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check a changed Job, then what changed. Upstream checks the spec both times: a fault of it is among the causes twice."""
        faults = list(_job(new))
        again = list(_spec(new["spec"])) if faults else []
        return [*faults, *again, *validate_job_update(new, old, self._gates)]

    def validate_status(self, new: Tree, old: Tree, ctx: WriteContext) -> list[FieldError]:
        """Check the transition of the status."""
        return list(validate_job_status(new, old))

    def spec_warnings(self, obj: Tree) -> list[str]:
        """Advise against index lists that may grow too long."""
        return job_spec_warnings(obj["spec"], "spec")


def job_spec_warnings(spec: Tree, path: str) -> list[str]:
    """Return the advice on a Job spec itself (its pod template apart)."""
    many = (spec.get("completions") or 0) > _MANY_COMPLETIONS and (spec.get("parallelism") or 0) > _MANY_PODS
    if spec.get("completionMode") != "Indexed" or not many:
        return []
    text = (
        "In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, "
        "Kubernetes might not be able to track completedIndexes when a big number of indexes fail"
    )
    return [f"{path}: {text}"]


def default_job_spec(spec: Tree) -> Tree:
    """Return a Job spec with the counts of a Job that is to run once, where none are given; the same tree where nothing is missing."""
    if spec.get("parallelism") is not None:
        return spec
    fill = {"parallelism": 1} if spec.get("completions") is not None else {"parallelism": 1, "completions": 1}
    return {**spec, **fill}


# ------------------------------------------------------------------------------------------------ selector and labels


def generated_labels(obj: Tree) -> dict[str, str]:
    """Return the labels that tie pods to their Job, under the prefixed keys and the old ones."""
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    return {CONTROLLER_UID: uid, JOB_NAME: name, LEGACY_CONTROLLER_UID: uid, LEGACY_JOB_NAME: name}


def _with_generated_selector(obj: Tree) -> Tree:
    """Add what is missing; labels and selectors that the user gave stay and are refused later where they contradict."""
    spec: Tree = obj["spec"]
    template: Tree = spec.get("template") or {}
    labelled = {**template, "metadata": {**(template.get("metadata") or {}), "labels": {**generated_labels(obj), **template_labels(template)}}}
    selector: Tree = spec.get("selector") or {}
    matched = {CONTROLLER_UID: obj["metadata"]["uid"], **(selector.get("matchLabels") or {})}
    return {**obj, "spec": {**spec, "template": labelled, "selector": {**selector, "matchLabels": matched}}}


def _shares_labels(obj: Tree) -> bool:
    """Tell whether the labels of a Job are the very ones of its template."""
    labels = (obj.get("metadata") or {}).get("labels")
    return labels is not None and labels is template_labels((obj.get("spec") or {}).get("template") or {})


def _labelled(obj: Tree) -> Tree:
    """Return a Job that has labels: without own ones those of its template, if there are any."""
    meta: Tree = obj.get("metadata") or {}
    if meta.get("labels"):
        return obj
    labels = template_labels((obj.get("spec") or {}).get("template") or {})
    return {**obj, "metadata": {**meta, "labels": labels}} if labels else obj


# ------------------------------------------------------------------------------------------------ rules


def _job(obj: Tree) -> Errors:
    spec: Tree = obj["spec"]
    selector: Tree | None = spec.get("selector")
    if not spec.get("manualSelector") and selector is not None:
        yield from _generated_selector(obj, selector)
    yield from _spec(spec)
    yield from _hostnames(obj["metadata"]["name"], spec)


def _spec(spec: Tree) -> Errors:
    selector: Tree | None = spec.get("selector")
    yield from validate_job_spec(spec, "spec")
    if selector is None:
        yield required("spec.selector")
    else:
        yield from validate_label_selector(selector, "spec.selector")
    yield from mismatch(selector, spec.get("template") or {}, "spec.template")


def _generated_selector(obj: Tree, selector: Tree) -> Errors:
    labels = template_labels(obj["spec"].get("template") or {})
    expected = generated_labels(obj)
    for key in (LEGACY_CONTROLLER_UID, LEGACY_JOB_NAME, CONTROLLER_UID, JOB_NAME):
        path = f"spec.template.metadata.labels[{key}]"
        if key not in labels:
            yield required(path, f"must be '{expected[key]}'")
        elif labels[key] != expected[key]:
            yield invalid(path, labels, f"must be '{expected[key]}'")
    try:
        if not from_label_selector(selector).matches(expected):
            yield invalid("spec.selector", selector, "`selector` not auto-generated")
    except ValueError:
        pass  # reported by the check of the selector itself


def _hostnames(name: str, spec: Tree) -> Errors:
    """Refuse an Indexed Job whose last pod would have a hostname that is no DNS label."""
    completions = spec.get("completions")
    if spec.get("completionMode") == "Indexed" and completions is not None and completions > 0:
        hostname = f"{name}-{completions - 1}"
        if names.dns1123_label(hostname):
            yield invalid("metadata.name", name, f"will not able to create pod with invalid DNS label: {hostname}")
