"""The loops: ProvisioningRequests of Workloads that hold quota, and whether a check can be used.

A request lives as long as the try that it was made for: it goes when its Workload is evicted or finished, when its configuration asks for something else, and
(by its owner) with the Workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubemini.api.resources import ADMISSION_CHECKS, POD_TEMPLATES, PROVISIONING_REQUEST_CONFIGS, PROVISIONING_REQUESTS, WORKLOADS, Resource
from kubemini.api.trees import Tree
from kubemini.api.wellknown import kueue as names
from kubemini.api.wellknown import provisioning
from kubemini.controllers.kueue import conditions
from kubemini.controllers.kueue.conditions import Draft
from kubemini.controllers.kueue.hub import Hub
from kubemini.controllers.kueue.integrations.framework import Permanent
from kubemini.controllers.kueue.parameters import parameters_problem
from kubemini.controllers.kueue.provisioning import states
from kubemini.controllers.kueue.provisioning.naming import attempt_of, request_name, template_name
from kubemini.controllers.kueue.provisioning.podsets import pod_template, wanted
from kubemini.controllers.kueue.reservation import PENDING, READY
from kubemini.controllers.kueue.writing import write_status
from kubemini.machinery.errors import AlreadyExists, ApiStatus, Conflict, InternalError, NotFound
from kubemini.runtime.controller import Context, Controller
from kubemini.runtime.keys import controller_uid, key_of, owner_reference

COMPONENT = "kueue-provisioning-request-controller"
LONGEST_MESSAGE = 32768
Configs = Mapping[str, Tree | None]
"""Our checks of a Workload with their configurations; None = it is missing."""


class ProvisioningController(Controller):
    """Keys are Workloads."""

    name = "kueue-provisioning-workload"
    measured_as = "provisioning_workload"
    component = COMPONENT

    def __init__(self, hub: Hub) -> None:
        super().__init__()
        self.hub = hub

    def setup(self, ctx: Context) -> None:
        """Follow Workloads, their requests, checks and configurations."""
        self._ctx = ctx
        self.hub.attach(ctx)
        self._checks = ctx.informer(ADMISSION_CHECKS)
        self._configs = ctx.informer(PROVISIONING_REQUEST_CONFIGS)
        self._requests = ctx.informer(PROVISIONING_REQUESTS)
        self._requests.add_index("controller", controller_uid)
        self._ours: dict[str, None] = {}
        """Names of the checks that are ours."""
        self._gone: dict[str, None] = {}
        """Uids of requests that were deleted here and may still be in the cache."""
        self._checks.on_change(self._on_check)
        self._configs.on_change(self._on_config)
        self._requests.on_change(self._on_request)
        self._requests.on_change(self.enqueue_owner(WORKLOADS))
        self.hub.workloads.on_change(self._on_workload)

    def _on_workload(self, old: Tree | None, new: Tree | None) -> None:
        if new is None:
            return
        asks = self._ours and (new.get("status") or {}).get("admissionChecks")
        if asks or (self._requests.objects and self._requests.count_index("controller", new["metadata"]["uid"])):
            self.queue.add(key_of(new))

    def _on_request(self, old: Tree | None, new: Tree | None) -> None:
        if new is None and old is not None:
            self._gone.pop(old["metadata"]["uid"], None)

    def _on_check(self, old: Tree | None, new: Tree | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        was = name in self._ours
        if new is not None and new["spec"].get("controllerName") == names.PROVISIONING_REQUEST_CONTROLLER:
            self._ours[name] = None
        else:
            self._ours.pop(name, None)
        if was or name in self._ours:
            self._look_at([name])

    def _on_config(self, old: Tree | None, new: Tree | None) -> None:
        name = (new or old or {})["metadata"]["name"]
        if self._ours and (old is None or new is None or old["spec"] != new["spec"]):
            self._look_at([each for each in self._ours if _config_name(self._checks.get(each)) == name])

    def _look_at(self, checks: Iterable[str]) -> None:
        """Look at the Workloads with some of these checks."""
        wanted_ = frozenset(checks)
        for key, workload in self.hub.workloads.objects.items() if wanted_ else ():
            if any(each["name"] in wanted_ for each in (workload.get("status") or {}).get("admissionChecks") or ()):
                self.queue.add(key)

    # ------------------------------------------------------------------ the pass

    async def reconcile(self, key: str) -> float | None:
        """Bring the requests of a Workload in line with its try, and its checks with their answers."""
        workload = self.hub.workloads.get_key(key)
        if workload is None:
            return None
        finished, evicted = conditions.finished(workload), conditions.evicted(workload)
        if not finished and not evicted and not conditions.reserved(workload):
            return None
        owned = [each for each in self._requests.by_index("controller", workload["metadata"]["uid"]) if not self._going(each)]
        if finished or evicted:
            if finished or self.hub.config.on("CleanupProvisioningRequestsOnEviction"):
                await self._delete(owned)
            return None
        configs = self._configurations(workload)
        if configs is None:
            return None
        newest = _newest(workload, owned, configs)
        stored = await self._tell(workload, configs, newest)
        if stored is None:
            return None
        kept = {each["metadata"]["uid"] for each in newest.values()}
        await self._delete(each for each in owned if each["metadata"]["uid"] not in kept)
        for check, config in configs.items():
            if config is not None:
                await self._ask(stored, check, config, newest.get(check))
        return None

    def _configurations(self, workload: Tree) -> dict[str, Tree | None] | None:
        """Return our checks of a Workload; None where one refers to something else: its own event comes when that is mended."""
        found: dict[str, Tree | None] = {}
        for state in workload["status"].get("admissionChecks") or ():
            check = self._checks.get(state["name"])
            if check is None or check["spec"].get("controllerName") != names.PROVISIONING_REQUEST_CONTROLLER:
                continue
            if parameters_problem(check["spec"].get("parameters"), PROVISIONING_REQUEST_CONFIGS):
                return None
            found[state["name"]] = self._configs.get(_config_name(check))
        return found

    def _going(self, request: Tree) -> bool:
        """Tell whether a request has been deleted: it belongs to a try that is over, even where it is still in the cache or somebody's finalizer keeps it."""
        return "deletionTimestamp" in request["metadata"] or request["metadata"]["uid"] in self._gone

    async def _delete(self, requests: Iterable[Tree]) -> None:
        for each in requests:
            meta = each["metadata"]
            self._gone[meta["uid"]] = None
            try:
                await self._ctx.client.delete(PROVISIONING_REQUESTS, meta["name"], namespace=meta["namespace"], uid=meta["uid"])
            except (NotFound, Conflict):
                continue  # it is gone already, be it that another has its name
            except BaseException:
                self._gone.pop(meta["uid"], None)
                raise

    # ------------------------------------------------------------------ telling

    async def _tell(self, workload: Tree, configs: Configs, newest: Mapping[str, Tree]) -> Tree | None:
        """Write what the answers mean for the checks. Return the Workload as it is then, None where its try is over."""
        told: list[str] = []

        def change(draft: Draft) -> bool:
            tree = draft.obj
            told.clear()
            if not conditions.reserved(tree) or conditions.evicted(tree) or conditions.finished(tree):
                return False
            before: list[Tree] = draft.get("admissionChecks") or []
            after = [_next(each, tree, configs, newest) for each in before]
            told.extend(_update(old, new) for old, new in zip(before, after, strict=True) if old["state"] != new["state"])
            if any(old is not new for old, new in zip(before, after, strict=True)):
                draft.set("admissionChecks", after)
            return True

        stored = await write_status(self._ctx, workload, change)
        if stored is not None:
            for message in told:
                self._ctx.recorder.event(stored, "Normal", "AdmissionCheckUpdated", message)
        return stored

    # ------------------------------------------------------------------ asking

    async def _ask(self, workload: Tree, check: str, config: Tree, request: Tree | None) -> None:
        """Make the request of a check's next try where it is due, and hand its templates over to it."""
        state = next((each for each in workload["status"].get("admissionChecks") or () if each["name"] == check), None)
        if state is None or state["state"] == READY:
            return
        attempt = state.get("retryCount", 0) + 1
        if request is not None:
            over = conditions.is_true(request, provisioning.FAILED) or (
                conditions.is_true(request, provisioning.BOOKING_EXPIRED) and not conditions.admitted(workload)
            )
            if over and state["state"] == PENDING:
                attempt = attempt_of(request["metadata"]["name"], workload["metadata"]["name"], check) + 1
                request = None
        if request is None:
            request = await self._make(workload, check, config, attempt)
        if request is not None:
            await self._hand_over(workload, request)

    async def _make(self, workload: Tree, check: str, config: Tree, attempt: int) -> Tree | None:
        """Return the request of a try, made unless it is there; None where nothing is to be asked for, or the one before it has not gone yet."""
        meta = workload["metadata"]
        asked = wanted(workload, config)
        if not asked:
            return None
        name = request_name(meta["name"], check, attempt)
        found = await self._get(PROVISIONING_REQUESTS, name, meta["namespace"])
        if found is not None and controller_uid(found) == (meta["uid"],):
            return None if self._going(found) else found
        pod_sets = []
        for each in asked:
            template = template_name(name, each.pod_set["name"])
            try:
                await self._make_template(workload, template, pod_template(template, workload, each, self.hub.cache.flavors))
            except (ApiStatus, Permanent) as problem:
                message = f'Error creating PodTemplate "{template}": {problem}'
                await self._refused(workload, check, message)
                raise InternalError(message) from problem
            pod_sets.append({"podTemplateRef": {"name": template}, "count": each.count})
        wish: Tree = {
            "apiVersion": PROVISIONING_REQUESTS.api_version,
            "kind": PROVISIONING_REQUESTS.kind,
            "metadata": {
                "name": name,
                "namespace": meta["namespace"],
                "labels": {names.MANAGED: "true"},
                "ownerReferences": [owner_reference(workload)],
            },
            "spec": {
                "podSets": pod_sets,
                "provisioningClassName": config["spec"]["provisioningClassName"],
                "parameters": states.parameters(workload, config),
            },
        }
        try:
            made = await self._ctx.client.create(PROVISIONING_REQUESTS, wish)
        except ApiStatus as problem:
            if not (isinstance(problem, AlreadyExists) and self._requests.get(name, meta["namespace"]) is None):
                await self._refused(workload, check, f'Error creating ProvisioningRequest "{name}": {problem}')
            raise
        self._ctx.recorder.event(workload, "Normal", "ProvisioningRequestCreated", f'Created ProvisioningRequest: "{name}"')
        return made

    async def _make_template(self, workload: Tree, name: str, template: Tree) -> None:
        """Make a template unless it is there. One that still belongs to a request of the same name which is gone is made anew."""
        meta = workload["metadata"]
        found = await self._get(POD_TEMPLATES, name, meta["namespace"])
        if found is not None and controller_uid(found) != (meta["uid"],):
            await self._ctx.client.delete(POD_TEMPLATES, name, namespace=meta["namespace"], uid=found["metadata"]["uid"])
            found = None
        if found is None:
            await self._ctx.client.create(POD_TEMPLATES, template)

    async def _hand_over(self, workload: Tree, request: Tree) -> None:
        """Let the templates go with their request instead of with the Workload."""
        meta = request["metadata"]
        for each in request["spec"]["podSets"]:
            template = await self._get(POD_TEMPLATES, each["podTemplateRef"]["name"], meta["namespace"])
            if template is None or controller_uid(template) == (meta["uid"],):
                continue
            rest = [each for each in template["metadata"].get("ownerReferences") or () if each["uid"] != workload["metadata"]["uid"]]
            owners = [*rest, owner_reference(request)]
            await self._ctx.client.update(POD_TEMPLATES, {**template, "metadata": {**template["metadata"], "ownerReferences": owners}})

    async def _get(self, resource: Resource, name: str, namespace: str) -> Tree | None:
        try:
            return await self._ctx.client.get(resource, name, namespace)
        except NotFound:
            return None

    async def _refused(self, workload: Tree, check: str, message: str) -> None:
        """Say on the check why its request could not be made."""
        self._ctx.recorder.event(workload, "Warning", "FailedCreate", message)

        def change(draft: Draft) -> bool:
            if not conditions.reserved(draft.obj) or conditions.evicted(draft.obj):
                return False
            checks: list[Tree] = draft.get("admissionChecks") or []
            draft.set("admissionChecks", [{**each, "message": message[:LONGEST_MESSAGE]} if each["name"] == check else each for each in checks])
            return True

        await write_status(self._ctx, workload, change)


def _newest(workload: Tree, owned: Iterable[Tree], configs: Configs) -> dict[str, Tree]:
    """Return the newest request of each check for which one is needed, of those that ask for what is configured."""
    found: dict[str, Tree] = {}
    name = workload["metadata"]["name"]
    for check, config in configs.items():
        if config is None or not wanted(workload, config):
            continue
        mine = [(attempt_of(each["metadata"]["name"], name, check), each) for each in owned if states.follows(each, config)]
        last = max((attempt for attempt, _ in mine), default=0)
        if last:
            found[check] = next(each for attempt, each in mine if attempt == last)
    return found


def _next(check: Tree, workload: Tree, configs: Configs, newest: Mapping[str, Tree]) -> Tree:
    """Return the next state of a check; those of others and those without an answer stay."""
    if check["name"] not in configs:
        return check
    config = configs[check["name"]]
    if config is None:
        return states.inactive(check)
    if not wanted(workload, config):
        return states.not_needed(check)
    request = newest.get(check["name"])
    return check if request is None else states.answered(check, workload, request, config)


def _update(old: Tree, new: Tree) -> str:
    more = f" with message: {new['message']}" if new.get("message") else ""
    return f"Admission check {old['name']} updated state from {old['state']} to {new['state']}{more}"


def _config_name(check: Tree | None) -> str:
    name: str = ((check or {"spec": {}})["spec"].get("parameters") or {}).get("name", "")
    return name


class ProvisioningCheckController(Controller):
    """Keys are AdmissionChecks: active while their configuration is there."""

    name = "kueue-provisioning-admissioncheck"
    measured_as = "provisioning_admissioncheck"
    component = COMPONENT

    def setup(self, ctx: Context) -> None:
        """Follow checks and configurations."""
        self._ctx = ctx
        self._checks = ctx.informer(ADMISSION_CHECKS)
        self._configs = ctx.informer(PROVISIONING_REQUEST_CONFIGS)
        self._checks.on_change(lambda old, new: self.queue.add(key_of(new)) if new is not None and _is_ours(new) else None)
        self._configs.on_change(self._on_config)

    def _on_config(self, old: Tree | None, new: Tree | None) -> None:
        if old is not None and new is not None:
            return
        name = (new or old or {})["metadata"]["name"]
        for key, check in self._checks.objects.items():
            if _is_ours(check) and _config_name(check) == name:
                self.queue.add(key)

    async def reconcile(self, key: str) -> float | None:
        """Say whether a check can be used. Only a change of that is written: a new reason for the same is not."""
        check = self._checks.get_key(key)
        if check is None or not _is_ours(check):
            return None
        reference = check["spec"].get("parameters")
        problem = parameters_problem(reference, PROVISIONING_REQUEST_CONFIGS)
        if not problem and self._configs.get(_config_name(check)) is None:
            problem = f'{PROVISIONING_REQUEST_CONFIGS.kind}.{PROVISIONING_REQUEST_CONFIGS.group} "{_config_name(check)}" not found'
        status = (False, "BadParametersRef", problem) if problem else (True, "Active", "The admission check is active")
        known = conditions.find(check, names.ACTIVE)
        if known is not None and (known["status"] == "True") == status[0]:
            return None
        draft = Draft(check, self._ctx.env.stamp())
        draft.mark(names.ACTIVE, *status)
        try:
            await self._ctx.client.update_status(ADMISSION_CHECKS, draft.tree())
        except NotFound:
            return None
        return None


def _is_ours(check: Tree) -> bool:
    return bool(check["spec"].get("controllerName") == names.PROVISIONING_REQUEST_CONTROLLER)
