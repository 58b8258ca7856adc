"""Delete: grace, finalizers and propagation, then removal. Mirrors apiserver's ``registry/generic/registry`` Delete."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from kubemini.api.trees import Tree
from kubemini.machinery.errors import ApiStatus, Conflict, Invalid, MethodNotAllowed, NotFound, invalid, not_supported
from kubemini.server import objectmeta
from kubemini.server.admission import AdmissionRequest
from kubemini.server.options import DEFAULT_DELETE, EVERYTHING, DeleteOptions, ListOptions, Outcome
from kubemini.server.registry import Kind, Served
from kubemini.server.strategy import Strategy, WriteContext
from kubemini.server.writing import Writing
from kubemini.store import Record


class Deleting(Writing):
    """The delete verbs."""

    async def delete(self, served: Served, namespace: str, name: str, options: DeleteOptions = DEFAULT_DELETE) -> Outcome:
        """Delete an object, or begin to. The outcome holds the object where it stays or its kind returns it, a Status otherwise. Raise `NotFound`, `Conflict`."""
        kind = served.kind
        if "delete" not in kind.verbs:
            raise MethodNotAllowed
        _check(options)
        warnings = deletion_warnings(kind, options)
        try:
            return await self._delete(served, self.live(kind, namespace, name), options, warnings)
        except ApiStatus as refusal:
            refusal.warned(warnings)
            raise

    async def _delete(self, served: Served, record: Record, options: DeleteOptions, warnings: list[str]) -> Outcome:
        kind = served.kind
        strategy = kind.strategy
        obj = record.obj
        meta = obj["metadata"]
        name, namespace = meta["name"], meta.get("namespace", "")
        _preconditions(kind, meta, options)
        ctx = self.context(options)
        request = AdmissionRequest(kind, "DELETE", namespace, name, None, obj, ctx, warnings=warnings)
        self.chain.validate(request)
        for each in self.chain.remote:
            if each.matches(request):
                await each.validate(request)
        strategy.check_delete(obj, ctx)
        kept = self._kept(kind, obj, options, ctx)
        table = self.store.table(kind.storage)
        if kept is None:
            if strategy.graceful and not options.dry_run and "deletionTimestamp" not in meta:
                # What could have had grace is seen to be deleted before it is gone
                marked = {**obj, "metadata": objectmeta.marked(meta, now=self.env.now(), grace=0)}
                record = table.update(record.key, marked, record.revision)
            shown = record if options.dry_run else table.delete(record.key, record.revision)
            if not options.dry_run:
                strategy.after_delete(shown.obj, ctx)
            if strategy.returns_deleted:
                return Outcome(served.from_storage(shown.obj), None, 200, request.warnings)
            return Outcome(deleted_status(kind, meta), None, 200, request.warnings)
        code = 202 if options.orphan is False else 200
        if kept is obj or options.dry_run:
            return Outcome(served.from_storage(kept), None, code, request.warnings)
        written = table.update(record.key, kept, record.revision)
        return Outcome(served.from_storage(written.obj), written, code, request.warnings)

    def _kept(self, kind: Kind, obj: Tree, options: DeleteOptions, ctx: WriteContext) -> Tree | None:
        """Return the object as it stays behind after this deletion (the same tree when nothing changes), or None when it goes now."""
        strategy = kind.strategy
        meta = obj["metadata"]
        now = self.env.now()
        grace = max(strategy.grace(obj, options.grace), 0) if strategy.graceful else 0
        marked = "deletionTimestamp" in meta
        fresh = objectmeta.with_finalizers(meta, objectmeta.propagated(meta, _propagation(strategy, meta, options), options.orphan))
        if grace > 0 and not marked:
            return {**obj, "metadata": objectmeta.marked(fresh, now=now, grace=grace)}
        if grace > 0 and meta.get("deletionGracePeriodSeconds"):
            if options.grace is not None:
                fresh = objectmeta.shortened(fresh, now=now, grace=grace)
            return obj if fresh == meta else {**obj, "metadata": fresh}
        stays = strategy.terminating(obj, ctx)
        if not fresh.get("finalizers") and stays is None:
            return None
        if not marked:
            fresh = objectmeta.marked(fresh, now=now, grace=0)
        elif meta.get("deletionGracePeriodSeconds"):
            fresh = {**fresh, "deletionGracePeriodSeconds": 0, "deletionTimestamp": min(meta["deletionTimestamp"], self.env.stamp())}
        kept = stays if stays is not None else obj
        before: list[str] = meta.get("finalizers") or []
        added: list[str] = kept["metadata"].get("finalizers") or []
        brought = [each for each in added if each not in before]
        if brought:
            # A kind may answer its deletion with a finalizer of its own (definitions do).
            held = cast("list[str]", fresh.get("finalizers") or [])
            fresh = {**fresh, "finalizers": [*held, *brought]}
        return obj if kept is obj and fresh == meta else {**kept, "metadata": fresh}

    async def delete_collection(
        self, served: Served, namespace: str, selection: ListOptions = EVERYTHING, options: DeleteOptions = DEFAULT_DELETE
    ) -> list[Tree]:
        """Delete what a list selects; return the objects as they were found. Objects that vanish meanwhile are skipped."""
        if "deletecollection" not in served.kind.verbs:
            raise MethodNotAllowed
        _check(options)
        found = self.list(served, namespace, replace(selection, resource_version=""))
        for record in found.records:
            try:
                live = self.live(served.kind, record.obj["metadata"].get("namespace", ""), record.obj["metadata"]["name"])
                await self._delete(served, live, options, [])
            except NotFound:
                continue
        return [served.from_storage(record.obj) for record in found.records]


def deletion_warnings(kind: Kind, options: DeleteOptions) -> list[str]:
    """Return the advice to who deletes without saying what becomes of dependents."""
    advice = kind.strategy.orphaning_advice
    return [advice] if advice and not options.propagation and options.orphan is None else []


def deleted_status(kind: Kind, meta: Tree) -> Tree:
    """Return the Success status of a finished deletion."""
    details: Tree = {"name": meta["name"]}
    if kind.group:
        details["group"] = kind.group
    details |= {"kind": kind.plural, "uid": meta["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _propagation(strategy: Strategy, meta: Tree, options: DeleteOptions) -> str:
    """Return the propagation policy: as asked for, or the kind's default unless a finalizer already says what is to happen."""
    if options.propagation or options.orphan is not None or not strategy.orphans_by_default:
        return options.propagation
    decided = {"orphan", "foregroundDeletion"}.intersection(meta.get("finalizers") or ())
    return "" if decided else "Orphan"


def _check(options: DeleteOptions) -> None:
    problems = []
    if options.orphan is not None and options.propagation:
        problems.append(invalid("propagationPolicy", options.propagation, "orphanDependents and deletionPropagation cannot be both set"))
    if options.propagation and options.propagation not in ("Foreground", "Background", "Orphan"):
        problems.append(not_supported("propagationPolicy", options.propagation, ("Background", "Foreground", "Orphan")))
    if problems:
        raise Invalid.of("DeleteOptions", "meta.k8s.io", "", problems)


def _preconditions(kind: Kind, meta: Tree, options: DeleteOptions) -> None:
    if options.uid and options.uid != meta["uid"]:
        raise Conflict.of(
            kind.kind,
            kind.group,
            meta["name"],
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). The object might have been deleted and then recreated",
        )
    if options.resource_version and options.resource_version != meta["resourceVersion"]:
        raise Conflict.of(
            kind.kind,
            kind.group,
            meta["name"],
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in record ({meta['resourceVersion']}). "
            "The object might have been modified",
        )
