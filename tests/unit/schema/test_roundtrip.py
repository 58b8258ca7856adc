"""How a Go webhook leaves what a custom resource embeds."""

from __future__ import annotations

from kubemini.api.trees import Tree
from kubemini.machinery.schema.roundtrip import go_form, go_written

TEMPLATE = "batch/v1.JobTemplateSpec"


def test_empty_structs_appear_and_nothing_is_defaulted() -> None:
    """What Go always serialises is added; defaults of the kind itself are not."""
    tree = {"spec": {"template": {"spec": {"containers": [{"name": "m", "image": "x"}]}}}}
    assert go_written(TEMPLATE)(tree) == {
        "metadata": {},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [{"name": "m", "image": "x", "resources": {}}]}}},
    }


def test_zero_values_stay_and_texts_become_canonical() -> None:
    """Removals are dropped by controller-runtime, replacements are not."""
    resources = {"requests": {"cpu": "1000m"}}
    tree: Tree = {
        "metadata": {"labels": {}},
        "spec": {"template": {"metadata": {}, "spec": {"hostNetwork": False, "containers": [{"name": "m", "resources": resources}]}}},
    }
    written = go_written(TEMPLATE)(tree)
    assert written["metadata"] == {"labels": {}}
    spec = written["spec"]["template"]["spec"]
    assert spec["hostNetwork"] is False
    assert spec["containers"][0]["resources"] == {"requests": {"cpu": "1"}}


def test_a_missing_list_is_not_added_as_null() -> None:
    """The API server drops the null that Go writes for a list without omitempty."""
    assert go_written(TEMPLATE)({"spec": {"template": {"spec": {}}}})["spec"]["template"]["spec"] == {}


def test_no_null_is_added_at_any_depth() -> None:
    """What is added as a whole comes without the nulls inside it as well."""
    assert go_written(TEMPLATE)({}) == {"metadata": {}, "spec": {"template": {"metadata": {}, "spec": {}}}}


def test_an_empty_list_stays() -> None:
    """A list that is there and empty is so for Go too, and nothing about it changes."""
    tree: Tree = {"spec": {"template": {"spec": {"containers": []}}}}
    assert go_written(TEMPLATE)(tree)["spec"]["template"]["spec"] == {"containers": []}


def test_what_is_so_already_stays_itself() -> None:
    """The very same tree comes back where there is nothing to do, and the argument is never changed."""
    tree: Tree = {"spec": {"template": {"spec": {"containers": []}}}}
    before = repr(tree)
    once = go_written(TEMPLATE)(tree)
    assert go_written(TEMPLATE)(once) is once
    assert repr(tree) == before


def test_equal_for_go_is_equal_in_form() -> None:
    """Trees that a Go controller takes for equal have equal forms."""
    one = {"metadata": {"labels": {}}, "spec": {"template": {"spec": {"containers": [{"name": "m", "resources": {"limits": {"memory": "1024Mi"}}}]}}}}
    other = {
        "spec": {
            "template": {"metadata": {}, "spec": {"nodeSelector": {}, "containers": [{"name": "m", "resources": {"limits": {"memory": "1Gi"}}}]}}
        }
    }
    assert go_form(TEMPLATE)(one) == go_form(TEMPLATE)(other)


def test_what_go_cannot_decode_is_left_to_the_schema() -> None:
    """A value of the wrong type is no business of the round trip."""
    tree = {"spec": {"template": {"spec": {"containers": "none"}}}}
    assert go_written(TEMPLATE)(tree) is tree
