"""Create, update and patch: the write half of the request path.

Order, as upstream: decode (types, unknown fields, defaults) → metadata → mutating admission → strategy.prepare → validation → validating
admission → optimistic concurrency → no-op check → commit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from kubemini.api.trees import Tree
from kubemini.machinery.errors import AlreadyExists, ApiStatus, BadRequest, Conflict, FieldError, Invalid, MethodNotAllowed, NotFound, invalid
from kubemini.machinery.metadata import dedup_owner_references, metadata_problems_of_update, metadata_warnings, validate_metadata_create
from kubemini.server import objectmeta
from kubemini.server.admission import AdmissionRequest
from kubemini.server.kinds.core.formats import difference
from kubemini.server.managing import Managing, uid_mismatch, with_entries
from kubemini.server.options import DEFAULT_WRITE, Caller, DeleteOptions, Outcome, Patch, WriteOptions
from kubemini.server.patching import patched
from kubemini.server.registry import Kind, Served
from kubemini.server.strategy import Decoded, Strategy, WriteContext
from kubemini.server.subresources import STATUS, ActionSubresource, ObjectSubresource, ScaleSubresource, Subresources
from kubemini.server.verbs import Verbs
from kubemini.store import KeyExists, Record

CREATE_ATTEMPTS = 8
"""How often a generated name is drawn before the server gives up."""
CONTEXTS = 64
"""How many callers are remembered."""
CONFLICT_ATTEMPTS = 5
"""How often a patch without a resourceVersion is computed again when somebody was faster."""


class Writing(Verbs):
    """The write verbs. Every method is one atomic step unless remote admission has to be waited for."""

    proving: ClassVar[bool] = False
    """Prove what writers vouch for, as debug mode does: set by tests."""

    def __init__(self, *, subresources: Subresources, managing: Managing, **state: Any) -> None:
        super().__init__(**state)
        self.subresources = subresources
        self.managing = managing
        self._contexts: dict[tuple[int, bool], tuple[Caller, WriteContext]] = {}

    def context(self, options: WriteOptions | DeleteOptions) -> WriteContext:
        """Return what strategies and admission may know of a request; a client in process is the very same caller again and again."""
        caller = options.caller
        key = (id(caller), options.dry_run)
        known = self._contexts.get(key)
        if known is not None:
            return known[1]
        ctx = WriteContext(self.env, self.reader, caller.user, caller.groups, options.dry_run, caller.uid, caller.extra)
        if len(self._contexts) >= CONTEXTS:
            self._contexts.clear()
        self._contexts[key] = (caller, ctx)
        return ctx

    @property
    def _doubting(self) -> bool:
        """Whether what writers vouch for is looked at all the same."""
        return self.proving or self.store.debug

    def _decode(self, served: Served, body: Tree, options: WriteOptions, stored: Tree | None = None) -> Decoded:
        """Bring a body to its canonical form, which it has already where the writer vouches for it."""
        codec = served.version.codec
        if not options.canonical:
            return codec.decode(body, validation=options.field_validation, duplicates=options.duplicates, stored=stored)
        if self._doubting:
            clean = codec.decode(body, validation="Strict").tree
            if "status" not in body:
                # Of a new object there is nothing to say yet
                clean = {key: value for key, value in clean.items() if key != "status"}
            if clean != body:
                told = difference(body, clean) or "fields that are empty"
                raise AssertionError(f"{options.caller.user} vouched for a {served.kind.kind} that is not canonical:\n{told}")
        return Decoded(body)

    # ------------------------------------------------------------------ create

    async def create(self, served: Served, namespace: str, body: Tree, options: WriteOptions = DEFAULT_WRITE) -> Outcome:
        """Create an object. Raise `BadRequest`, `AlreadyExists`, `Invalid`, `Forbidden` and what admission refuses with."""
        kind = served.kind
        if "create" not in kind.verbs:
            raise MethodNotAllowed
        objectmeta.check_type(kind, served.version.name, body)
        return await self._admit(served, namespace, self._decode(served, body, options), options)

    async def _admit(self, served: Served, namespace: str, decoded: Decoded, options: WriteOptions, *, entries: list[Tree] | None = None) -> Outcome:
        """Bring a decoded new object through admission and validation to the store. `entries` are the managedFields of one that an apply creates."""
        kind = served.kind
        meta = decoded.tree.get("metadata") or {}
        objectmeta.namespace_of_new(kind, meta, namespace)
        obj = served.to_storage({**decoded.tree, "apiVersion": served.api_version})
        if kind.posts_to:
            plural, subresource = kind.posts_to.split("/")
            target = self.registry.served(kind.group, served.version.name, plural)
            assert target is not None, f"{kind.plural} posts to {kind.posts_to}, which is not served"
            return await self.act(target, namespace, meta.get("name", ""), subresource, obj, options)
        ctx = self.context(options)
        if kind.handler is not None:
            named = {"kind": kind.kind, "apiVersion": kind.api_version(kind.storage_version), "metadata": {}}
            answer = kind.handler.create(namespace, {**named, **obj, "kind": kind.kind}, ctx)
            return Outcome(served.from_storage(answer), None, 201, decoded.warnings)
        name, prefix = meta.get("name"), meta.get("generateName")
        if not name and not prefix:
            raise objectmeta.name_required(kind)
        for attempt in range(1, CREATE_ATTEMPTS + 1):
            warnings = list(decoded.warnings)
            chosen = name or objectmeta.generated_name(prefix or "", self.env)
            try:
                return await self._create(served, namespace, chosen, obj, warnings, ctx, options, entries)
            except KeyExists:
                if name or attempt == CREATE_ATTEMPTS:
                    raise self._taken(kind, namespace, chosen, generated=bool(prefix)).warned(warnings) from None
            except ApiStatus as refusal:
                refusal.warned(warnings)
                raise
        raise AssertionError("unreachable")

    def _taken(self, kind: Kind, namespace: str, name: str, *, generated: bool) -> AlreadyExists:
        live = self.store.table(kind.storage).get(objectmeta.key_of(kind, namespace, name))
        error = AlreadyExists.at(kind.plural, kind.group, name, deleting=live is not None and "deletionTimestamp" in live.obj["metadata"])
        if generated:
            error.message += ", the server was not able to generate a unique name for the object"
            error.details["retryAfterSeconds"] = 1
        return error

    async def _create(
        self,
        served: Served,
        namespace: str,
        name: str,
        obj: Tree,
        warnings: list[str],
        ctx: WriteContext,
        options: WriteOptions,
        entries: list[Tree] | None,
    ) -> Outcome:
        kind = served.kind
        strategy = kind.strategy
        named = (obj.get("metadata") or {}).get("name")
        obj = objectmeta.for_create(kind, obj, namespace, name, self.env)
        obj = _deduplicated(obj, warnings)
        obj = strategy.default(obj, ctx)
        if entries is None and options.track:
            entries = self.managing.entries(served, obj, None, options.manager, self.env.stamp())
        # Plugins that change things speak of an object without a name of its own by its prefix
        spoken = named or obj["metadata"].get("generateName") or name
        request = AdmissionRequest(kind, "CREATE", namespace, spoken, obj, None, ctx, warnings=warnings)
        changed = self.chain.mutate(request)
        remote = [each for each in self.chain.remote if each.matches(request)] if self.chain.remote else ()
        for each in remote:
            new = await each.mutate(request)
            if new is not None:
                request.obj, changed = new, True
        obj = request.obj or obj
        if changed:
            obj = strategy.default(obj, ctx)
        if strategy.has_status:
            status = strategy.initial_status(obj)
            if status is not None:
                obj = {**obj, "status": status}
            elif "status" in obj:
                obj = {key: value for key, value in obj.items() if key != "status"}
        obj = strategy.prepare_for_create(obj, ctx)
        vouched = _vouched(options, strategy, "", changed=changed)
        if not vouched or self._doubting:
            problems = validate_metadata_create(
                obj["metadata"], namespaced=kind.namespaced, validate_name=strategy.validate_name, custom=kind.custom or strategy.any_finalizer
            )
            problems += strategy.validate_create(obj, ctx)
            problems += self._schema_problems(served, obj, None)
            if problems:
                if vouched:
                    raise _disproved(options, problems)
                self.chain.read(request)
                raise Invalid.of(kind.kind, kind.group, name, problems)
            if not options.canonical:
                # Controllers do not listen
                warnings += metadata_warnings(obj["metadata"], custom=kind.custom)
                warnings += strategy.warnings(obj, None, ctx)
        request.obj, request.name = obj, name
        self.chain.validate(request)
        for each in remote:
            await each.validate(request)
        table = self.store.table(kind.storage)
        key = objectmeta.key_of(kind, namespace, name)
        if table.get(key) is not None:
            raise KeyExists(key)
        if options.track:
            obj = with_entries(obj, entries, None)
        obj = strategy.stored(obj)
        if options.dry_run:
            return Outcome(served.from_storage(obj), None, 201, warnings)
        record = table.create(key, obj)
        strategy.after_create(record.obj, ctx)
        return Outcome(served.from_storage(record.obj), record, 201, warnings)

    def _schema_problems(self, served: Served, obj: Tree, old: Tree | None) -> list[FieldError]:
        codec = served.version.codec
        if not served.kind.custom:
            return []
        if served.stored_as_is:
            return codec.validate(obj, old)
        return codec.validate(served.from_storage(obj), served.from_storage(old) if old is not None else None)

    # ------------------------------------------------------------------ update

    async def update(
        self, served: Served, namespace: str, name: str, body: Tree, options: WriteOptions = DEFAULT_WRITE, *, subresource: str = ""
    ) -> Outcome:
        """Replace an object, or one of its object-shaped subresources (status, scale, finalize, …). Raise `NotFound`, `Conflict`, `Invalid`."""
        kind = served.kind
        handler = self.subresource(served, subresource) if subresource else None
        if isinstance(handler, ActionSubresource):
            raise MethodNotAllowed
        record = self.store.table(kind.storage).get(objectmeta.key_of(kind, namespace, name))
        if record is None:
            if subresource or not kind.strategy.create_on_update:
                raise NotFound.of(kind.plural, kind.group, name)
            meta = body.get("metadata") or {}
            if meta.get("name") != name:
                raise BadRequest(f"the name of the object ({meta.get('name') or ''}) does not match the name on the URL ({name})")
            return await self.create(served, namespace, {**body, "metadata": {k: v for k, v in meta.items() if k != "resourceVersion"}}, options)
        if isinstance(handler, ScaleSubresource):
            return await self._update_scale(served, handler, record, body, options)
        objectmeta.check_type(kind, served.version.name, body)
        stored = record.obj if served.stored_as_is else None
        decoded = self._decode(served, body, options, stored)
        new = served.to_storage({**decoded.tree, "apiVersion": served.api_version})
        return await self._update(served, record, new, list(decoded.warnings), options, handler, unconditional=kind.strategy.unconditional_update)

    def subresource(self, served: Served, name: str) -> ObjectSubresource | ActionSubresource:
        """Return the behaviour of a subresource. Raise `NotFound` where the kind has none of that name."""
        kind = served.kind
        if name == "status" and kind.strategy.has_status:
            return STATUS
        if name == "scale" and kind.strategy.scale is not None:
            return ScaleSubresource(kind.strategy.scale)
        found = self.subresources.find(kind.storage, name)
        if found is None:
            raise NotFound.path()
        return found

    async def _update(
        self,
        served: Served,
        record: Record,
        new: Tree,
        warnings: list[str],
        options: WriteOptions,
        handler: ObjectSubresource | None,
        *,
        unconditional: bool,
        entries: list[Tree] | None = None,
        applied: bool = False,
    ) -> Outcome:
        """Bring a new state through admission and validation to the store. `applied`: its managedFields are `entries` (server-side apply)."""
        try:
            return await self._updated(served, record, new, warnings, options, handler, unconditional=unconditional, entries=entries, applied=applied)
        except ApiStatus as refusal:
            refusal.warned(warnings)
            raise

    async def _updated(
        self,
        served: Served,
        record: Record,
        new: Tree,
        warnings: list[str],
        options: WriteOptions,
        handler: ObjectSubresource | None,
        *,
        unconditional: bool,
        entries: list[Tree] | None,
        applied: bool,
    ) -> Outcome:
        kind = served.kind
        strategy = kind.strategy
        old = record.obj
        meta = old["metadata"]
        name, namespace = meta["name"], meta.get("namespace", "")
        sub = handler.name if handler is not None else ""
        ctx = self.context(options)
        given = new.get("metadata") or {}
        if given.get("resourceVersion") != meta["resourceVersion"]:
            objectmeta.check_revision(kind, given, record.revision, name, unconditional=unconditional)
        new = _deduplicated(objectmeta.for_update(kind, new, old, name, namespace), warnings)
        if handler is not None:
            new = handler.merge(new, old, kind, ctx)
        else:
            if strategy.has_status:
                new = _with_status_of(new, old)
            new = strategy.default_update(new, old, ctx)
        if options.track and not applied:
            entries = self.managing.entries(served, new, old, options.manager, self.env.stamp(), sub)
            new = with_entries(new, entries, None)
        request = AdmissionRequest(kind, "UPDATE", namespace, name, new, old, ctx, subresource=sub, warnings=warnings)
        changed = self.chain.mutate(request)
        remote = [each for each in self.chain.remote if each.matches(request)] if self.chain.remote else ()
        for each in remote:
            answer = await each.mutate(request)
            if answer is not None:
                request.obj, changed = answer, True
        if changed:
            new = request.obj or new
            if handler is None:
                new = strategy.default_update(new, old, ctx)
        if handler is not None:
            new = handler.prepare(new, old, kind, ctx)
        else:
            new = strategy.prepare_for_update(new, old, ctx)
            if strategy.has_status and changed:
                new = _with_status_of(new, old)
        if sub != "status":
            # A Deployment's generation follows its annotations, but not when its controller writes them with the status
            new = objectmeta.next_generation(kind, new, old)
        if "resourceVersion" not in new["metadata"]:
            new = {**new, "metadata": {**new["metadata"], "resourceVersion": meta["resourceVersion"]}}
        if new["metadata"] is not meta:
            again = "" if sub else strategy.metadata_again
            problems = metadata_problems_of_update(new["metadata"], meta, custom=kind.custom or strategy.any_finalizer, again=again)
            warned = metadata_warnings(new["metadata"], custom=kind.custom, old=meta)
        else:
            problems, warned = [], []
        vouched = _vouched(options, strategy, sub, changed=changed)
        if not vouched or self._doubting:
            problems += handler.validate(new, old, kind, ctx) if handler is not None else strategy.validate_update(new, old, ctx)
            problems += self._schema_problems(served, new, old)
        if problems:
            if vouched:
                raise _disproved(options, problems)
            self.chain.read(request)
            raise Invalid.of(kind.kind, kind.group, name, problems)
        warnings += warned
        if handler is None and not options.canonical:
            warnings += strategy.warnings(new, old, ctx)
        request.obj = new
        self.chain.validate(request)
        for each in remote:
            await each.validate(request)
        if options.track:
            new = with_entries(new, entries, old)
        if new == old:
            return Outcome(served.from_storage(old), record, 200, warnings)
        if options.dry_run:
            return Outcome(served.from_storage(new), None, 200, warnings)
        table = self.store.table(kind.storage)
        if remote and (live := table.get(record.key)) is not record:
            if live is None:
                raise NotFound.of(kind.plural, kind.group, name)
            raise Conflict.modified(kind.plural, kind.group, name)
        if _released(kind, new):
            gone = table.delete(record.key)
            strategy.after_delete(gone.obj, ctx)
            return Outcome(served.from_storage({**new, "metadata": {**new["metadata"], "resourceVersion": str(gone.revision)}}), None, 200, warnings)
        written = table.update(record.key, new)
        return Outcome(served.from_storage(written.obj), written, 200, warnings)

    async def _update_scale(self, served: Served, handler: ScaleSubresource, record: Record, body: Tree, options: WriteOptions) -> Outcome:
        new = handler.written(served.from_storage(record.obj), body, served.kind)
        outcome = await self._update(served, record, served.to_storage(new), [], options, handler.as_object(), unconditional=True)
        return replace(outcome, obj=handler.shown(served.kind, outcome.obj), record=None)

    # ------------------------------------------------------------------ patch

    async def patch(
        self, served: Served, namespace: str, name: str, patch: Patch, options: WriteOptions = DEFAULT_WRITE, *, subresource: str = ""
    ) -> Outcome:
        """Patch an object or subresource; computed again when a remote admission let somebody else be faster. Raise as `update`."""
        for attempt in range(1, CONFLICT_ATTEMPTS + 1):
            try:
                return await self._patch(served, namespace, name, patch, options, subresource)
            except Conflict as lost:
                pinned = isinstance(patch.body, dict) and (patch.body.get("metadata") or {}).get("resourceVersion")
                if pinned or attempt == CONFLICT_ATTEMPTS or type(lost) is not Conflict or not self.chain.remote:
                    raise
        raise AssertionError("unreachable")

    async def _patch(self, served: Served, namespace: str, name: str, patch: Patch, options: WriteOptions, subresource: str) -> Outcome:
        kind = served.kind
        handler = self.subresource(served, subresource) if subresource else None
        if isinstance(handler, ActionSubresource):
            raise MethodNotAllowed
        record = self.store.table(kind.storage).get(objectmeta.key_of(kind, namespace, name))
        if patch.type == "apply":
            if record is None and subresource:
                raise NotFound.of(kind.plural, kind.group, name)
            if record is None and isinstance(patch.body, dict) and (uid := (patch.body.get("metadata") or {}).get("uid")):
                raise uid_mismatch(served, name, uid)
            return await self._apply(served, namespace, name, patch, options, handler, record)
        if record is None:
            raise NotFound.of(kind.plural, kind.group, name)
        if isinstance(handler, ScaleSubresource):
            shown = handler.shown(kind, served.from_storage(record.obj))
            body, _ = patched(shown, patch, served, options.field_validation, scale=True)
            return await self._update_scale(served, handler, record, body, options)
        current = served.from_storage(record.obj)
        body, warnings = patched(current, patch, served, options.field_validation)
        if not (body.get("metadata") or {}).get("name"):
            raise BadRequest("the name of the object (based on URL) was undeterminable: name must be provided")
        if (body.get("metadata") or {}).get("name") != name:
            raise BadRequest(f"the name of the object ({(body.get('metadata') or {}).get('name') or ''}) does not match the name on the URL ({name})")
        if kind.namespaced and (body.get("metadata") or {}).get("namespace", namespace) != namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        uid = (body.get("metadata") or {}).get("uid")
        if uid and uid != record.obj["metadata"]["uid"]:
            raise Invalid.of(kind.kind, kind.group, name, [invalid("metadata.uid", uid, "field is immutable")] * 2)
        return await self._update(served, record, served.to_storage(body), warnings, options, handler, unconditional=True)

    async def _apply(
        self,
        served: Served,
        namespace: str,
        name: str,
        patch: Patch,
        options: WriteOptions,
        handler: ObjectSubresource | None,
        record: Record | None,
    ) -> Outcome:
        sub = handler.name if handler is not None else ""
        if record is None:
            tree, entries = self.managing.applied(
                served, None, patch.body, name, namespace, options.manager, self.env.stamp(), "", force=options.force
            )
            # A precondition on an object that does not exist is no obstacle to its creation
            meta = {key: value for key, value in (tree.get("metadata") or {}).items() if key != "resourceVersion"}
            tree = {**tree, "metadata": {**meta, "name": name}}
            decoded = served.version.codec.decode(tree, validation=options.field_validation, duplicates=options.duplicates)
            return await self._admit(served, namespace, decoded, options, entries=entries)
        if isinstance(handler, ScaleSubresource):
            tree, entries = self.managing.applied_scale(
                served, handler.paths.spec_replicas, record.obj, patch.body, options.manager, self.env.stamp(), force=options.force
            )
            outcome = await self._update(
                served, record, served.to_storage(tree), [], options, handler.as_object(), unconditional=True, entries=entries, applied=True
            )
            return replace(outcome, obj=handler.shown(served.kind, outcome.obj), record=None)
        merged, entries = self.managing.applied(
            served, record.obj, patch.body, name, namespace, options.manager, self.env.stamp(), sub, force=options.force
        )
        # The precondition is the configuration's, not the live object's
        pinned = (patch.body.get("metadata") or {}).get("resourceVersion") or ""
        merged = {**merged, "metadata": {**merged["metadata"], "resourceVersion": pinned}}
        decoded = served.version.codec.decode(merged, validation=options.field_validation)
        new = served.to_storage({**decoded.tree, "apiVersion": served.api_version})
        return await self._update(served, record, new, list(decoded.warnings), options, handler, unconditional=True, entries=entries, applied=True)

    # ------------------------------------------------------------------ actions

    async def act(self, served: Served, namespace: str, name: str, subresource: str, body: Tree, options: WriteOptions = DEFAULT_WRITE) -> Outcome:
        """POST to an action subresource (eviction, binding, token). Raise whatever the action refuses with."""
        handler = self.subresource(served, subresource)
        if not isinstance(handler, ActionSubresource):
            raise MethodNotAllowed
        return await handler.act(self, served, namespace, name, body, options)


def _vouched(options: WriteOptions, strategy: Strategy, subresource: str, *, changed: bool) -> bool:
    """Tell whether the writer vouches for a valid object: in one that admission `changed`, something is somebody else's."""
    return options.canonical and not changed and subresource in strategy.vouched


def _disproved(options: WriteOptions, problems: list[FieldError]) -> AssertionError:
    return AssertionError(f"{options.caller.user} vouched for what is invalid: {problems}")


def _deduplicated(obj: Tree, warnings: list[str]) -> Tree:
    """Return an object with each owner named once."""
    if "ownerReferences" not in obj["metadata"]:
        return obj
    meta, text = dedup_owner_references(obj["metadata"])
    if text:
        warnings.append(text)
    return obj if meta is obj["metadata"] else {**obj, "metadata": meta}


def _with_status_of(new: Tree, old: Tree) -> Tree:
    if new.get("status") is old.get("status"):
        return new
    if "status" in old:
        return {**new, "status": old["status"]}
    return {key: value for key, value in new.items() if key != "status"}


def _released(kind: Kind, new: Tree) -> bool:
    meta = new["metadata"]
    return "deletionTimestamp" in meta and not meta.get("finalizers") and not meta.get("deletionGracePeriodSeconds") and kind.strategy.may_go(new)
