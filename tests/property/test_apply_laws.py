"""Laws of patches and of server-side apply: repeating changes nothing, disjoint managers commute, nobody owns what is not there."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from kubemini.api.trees import Tree
from kubemini.machinery.apply.owning import fields_of
from kubemini.machinery.apply.paths import paths
from kubemini.machinery.apply.sets import MEMBER, Fields, difference, intersection
from kubemini.machinery.apply.shapes import Shape
from kubemini.machinery.errors import FieldConflict
from kubemini.machinery.merge import merge_patch
from kubemini.machinery.strategic import TypeMergeSchema, strategic_merge
from tests.unit.machinery.managed import MAIN, SCHEMAS, SHAPES, Managed

NAMES = st.sampled_from("abc")
VALUES = st.sampled_from(["1", "2"])
MANAGERS = st.sampled_from(["m1", "m2", "m3"])


def _some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Tree]:
    return st.fixed_dictionaries({}, optional=fields)


def _keyed(key: str, values: st.SearchStrategy[Any], fields: st.SearchStrategy[Tree]) -> st.SearchStrategy[list[Tree]]:
    return st.dictionaries(values, fields, min_size=1, max_size=3).map(lambda each: [{key: name, **rest} for name, rest in each.items()])


ENV = _keyed("name", NAMES, _some(value=VALUES))
CONTAINERS = _keyed("name", NAMES, _some(image=VALUES, env=ENV, args=st.lists(VALUES, min_size=1, max_size=2), resources=st.just({})))
METADATA = _some(
    labels=st.dictionaries(NAMES, VALUES, min_size=1, max_size=2),
    finalizers=st.lists(st.sampled_from(["x.y/a", "x.y/b", "x.y/c"]), unique=True, min_size=1, max_size=3),
)
SPECS = _some(
    hostname=VALUES,
    nodeSelector=st.dictionaries(NAMES, VALUES, min_size=1, max_size=2),
    tolerations=st.lists(_some(key=VALUES), min_size=1, max_size=2),
    containers=CONTAINERS,
    securityContext=_some(runAsUser=st.integers(0, 1)),
)
BODIES: st.SearchStrategy[Tree] = st.builds(lambda meta, spec: {"metadata": {"name": "p", **meta}, "spec": spec}, METADATA, SPECS)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | VALUES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=3)
)
OBJECTS = st.dictionaries(NAMES, JSON, max_size=3)


def pods() -> Managed:
    """Return a pod that is not there yet."""
    return Managed("", "v1", "Pod")


def owned_fields(obj: Managed) -> list[Fields]:
    """Return the sets of all managers."""
    return [each["fieldsV1"] for each in obj.entries]


def fields(obj: Managed, body: Tree) -> Fields:
    """Return the fields of a configuration of a pod."""
    root = obj.schema.root("v1")
    assert root is not None
    return MAIN.applied(fields_of({key: each for key, each in body.items() if key != "name"}, root))


def exists(value: Any, tree: Fields, shape: Shape | None) -> bool:
    """Tell whether every path of a set leads to something in a value. An empty container may be left out, as Go leaves it out."""
    for element, below in tree.items():
        if element == MEMBER:
            continue
        under = shape.of_element(element) if shape is not None else None
        if element[0] == "f":
            found = [value[element[2:]]] if isinstance(value, dict) and element[2:] in value else []
        else:
            assert shape is not None
            found = [each for each in value or () if shape.element_of(each) == element]
        if not found:
            if below or under is None or under.leaf:
                return False
        elif not exists(found[0], below, under):
            return False
    return True


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_twice_is_a_merge_patch_once(live: Tree, patch: Tree) -> None:
    """The second time nothing changes, and the very same object comes back; the operands stay as they were."""
    before = repr((live, patch))
    once = merge_patch(live, patch)
    assert merge_patch(once, patch) is once
    assert repr((live, patch)) == before


@given(BODIES, BODIES)
def test_a_configuration_twice_is_a_configuration_once(first: Tree, second: Tree) -> None:
    """Applying a configuration again leaves object and managers as they are, times included."""
    obj = pods()
    obj.apply("m1", first)
    once = obj.apply("m2", second, force=True)
    assert obj.apply("m2", second) == once


@given(st.lists(st.tuples(MANAGERS, st.sampled_from(["apply", "write", "status"]), BODIES), min_size=1, max_size=5))
def test_every_owned_field_exists(steps: list[tuple[str, str, Tree]]) -> None:
    """After any writes, what an entry names is in the object, entries are never empty, and main entries own no status."""
    obj = pods()
    obj.write("creator", {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "z", "image": "1"}]}})
    for manager, how, body in steps:
        if how == "apply":
            obj.apply(manager, body, force=True)
        elif how == "write":
            obj.write(manager, body)
        else:
            obj.change(manager, subresource="status", status={"phase": manager, "hostIP": body["spec"].get("hostname", "")})
        for entry in obj.entries:
            assert entry["fieldsV1"]
            assert entry.get("subresource") == "status" or "f:status" not in entry["fieldsV1"]
            assert exists(obj.live, entry["fieldsV1"], obj.schema.root("v1"))
        keys = [(each["manager"], each["operation"], each.get("subresource")) for each in obj.entries]
        assert len(keys) == len(set(keys))


@given(BODIES, BODIES, BODIES)
def test_disjoint_configurations_commute(base: Tree, left: Tree, right: Tree) -> None:
    """Two managers without a common field reach the same object in either order (up to the order of list elements)."""
    obj = pods()
    assume(not intersection(fields(obj, left), fields(obj, right)).get("f:spec"))
    assume(not intersection(fields(obj, left), fields(obj, right)).get("f:metadata", {}).keys() - {"f:name"})
    results = []
    for one, other in (((("m1", left)), ("m2", right)), (("m2", right), ("m1", left))):
        obj = pods()
        obj.write("creator", base)
        obj.apply(*one, force=True)
        live = obj.apply(*other, force=True)
        results.append(_unordered({key: live.get(key) for key in ("metadata", "spec")}))
    assert results[0] == results[1]


def _unordered(value: Any) -> Any:
    """Return a value with its keyed lists and sets in a canonical order, and without times."""
    if isinstance(value, dict):
        return {key: _unordered(each) for key, each in sorted(value.items()) if key != "managedFields"}
    if isinstance(value, list) and all(isinstance(each, dict) and "name" in each for each in value):
        return sorted((_unordered(each) for each in value), key=lambda each: str(each["name"]))
    return sorted(value) if isinstance(value, list) and all(isinstance(each, str) and "/" in each for each in value) else value


@given(BODIES, BODIES)
def test_force_takes_the_conflicting_fields(first: Tree, second: Tree) -> None:
    """Without force a conflict changes nothing and names fields of the other manager; with force these are exactly the ones that it loses."""
    obj = pods()
    obj.apply("m1", first)
    before = obj.live
    shared = obj.owned("m1") or {}
    try:
        obj.apply("m2", second)
        lost: list[str] = []
    except FieldConflict as conflict:
        assert obj.live is before
        lost = [each["field"] for each in conflict.details["causes"]]
        assert lost
        obj.apply("m2", second, force=True)
    assert list(paths(difference(shared, obj.owned("m1") or {}))) == lost


@given(BODIES, BODIES)
def test_what_one_manager_gives_up_goes(first: Tree, second: Tree) -> None:
    """Fields that only one manager applied and then leaves out are gone, or have their default; nobody owns them."""
    obj, fresh = pods(), pods()
    obj.apply("m", first)
    obj.apply("m", second)
    fresh.apply("m", second)
    assert obj.live is not None
    assert fresh.live is not None
    assert _unordered(obj.live) == _unordered(fresh.live)
    assert owned_fields(obj) == owned_fields(fresh)


@given(st.lists(st.tuples(MANAGERS, st.dictionaries(NAMES, VALUES)), min_size=2, max_size=6))
def test_the_last_writer_of_a_value_owns_it(steps: list[tuple[str, dict[str, str]]]) -> None:
    """Under plain writes every key belongs to the one manager who last changed it."""
    obj = Managed("", "v1", "ConfigMap")
    obj.write("creator", {"metadata": {"name": "n", "labels": {"kept": "1"}}})
    before: dict[str, str] = {}
    owners: dict[str, str] = {}
    for manager, data in steps:
        obj.change(manager, data=data)
        owners = {key: owners[key] if before.get(key) == value else manager for key, value in data.items()}
        before = data
        found = {each["manager"]: each["fieldsV1"].get("f:data", {}) for each in obj.entries}
        for key, owner in owners.items():
            assert [manager for manager, tree in found.items() if f"f:{key}" in tree] == [owner]


# ----------------------------------------------------------------------------------------------- strategic merge patch


def diff(old: Tree, new: Tree) -> Tree:
    """Return the strategic merge patch that turns one pod into another, as kubectl would write it."""
    patch: Tree = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value:
            continue
        if isinstance(before, dict) and isinstance(value, dict) and key != "nodeSelector":
            patch[key] = diff(before, value)
        elif key in {"containers", "env"} and before:
            patch[f"$setElementOrder/{key}"] = [{"name": each["name"]} for each in value]
            known = {each["name"]: each for each in before}
            changed = [{"name": each["name"], **diff(known.get(each["name"], {}), each)} for each in value if known.get(each["name"]) != each]
            patch[key] = changed + [{"$patch": "delete", "name": name} for name in known if name not in {each["name"] for each in value}]
        elif key == "finalizers" and before:
            patch[f"$setElementOrder/{key}"] = value
            patch[f"$deleteFromPrimitiveList/{key}"] = [each for each in before if each not in value]
            patch[key] = [each for each in value if each not in before]
        elif key == "nodeSelector" and before is not None:
            patch[key] = {"$patch": "replace", **value}
        else:
            patch[key] = value
    return patch


def _directives(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [key for key in value if key.startswith("$")] + [each for inner in value.values() for each in _directives(inner)]
    return [each for inner in value for each in _directives(inner)] if isinstance(value, list) else []


@given(BODIES, BODIES)
def test_a_strategic_diff_leads_to_its_goal(old: Tree, new: Tree) -> None:
    """The patch between two pods, applied to the first, gives the second, in its order and without any directive left."""
    info = SCHEMAS.type_of("", "v1", "Pod")
    assert info is not None
    before = repr(old)
    merged = strategic_merge(old, diff(old, new), TypeMergeSchema(SCHEMAS, info))
    assert _without_empty(merged) == _without_empty(new)
    assert not _directives(merged)
    assert repr(old) == before
    assert SHAPES.root(info) is SHAPES.root(info)


def _without_empty(value: Any) -> Any:
    """Return a tree without empty lists: a list that lost its last element and one that never was are one."""
    if isinstance(value, dict):
        return {key: _without_empty(each) for key, each in value.items() if each != []}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value
