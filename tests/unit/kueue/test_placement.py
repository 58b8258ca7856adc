"""Placement in a topology: blocks of racks of hosts."""

from __future__ import annotations

import pytest

from kubemini.controllers.kueue.topology.placement import Domain, NoRoom, Search, Values, search


def tree(room: dict[str, int]) -> Domain:
    """Return a tree of hosts named block/rack/host."""
    root = Domain((), -1)
    known: dict[Values, Domain] = {(): root}
    for path in sorted(room):
        values: Values = ()
        for depth, part in enumerate(path.split("/")):
            above = known[values]
            values = (*values, part)
            if values not in known:
                known[values] = Domain(values, depth)
                above.children.append(known[values])
    return root


def place(room: dict[str, int], wanted: Search, leaders: dict[str, int] | None = None) -> dict[str, int]:
    """Return pods by host; `leaders` gives the hosts that take the leader and what they hold beside it. The leader's host has a ``*``."""

    def leaf(domain: Domain) -> tuple[int, bool, int]:
        path = "/".join(domain.values)
        beside = (leaders or {}).get(path)
        return room[path], beside is not None, beside if beside is not None else room[path]

    found = search(tree(room), wanted, leaf)
    named = {"/".join(values): count for values, count in found.pods.items()}
    return named if found.leader is None else {**named, f"*{'/'.join(found.leader)}": 1}


ROOM = {"b1/r1/x1": 1, "b1/r2/x2": 1, "b1/r2/x3": 1, "b2/r1/x4": 1, "b2/r1/x5": 1, "b2/r1/x6": 1, "b2/r1/x7": 1}


def test_the_smallest_rack_that_is_large_enough_is_taken() -> None:
    """A required rack of two goes to the rack of two, not to that of four."""
    assert place(ROOM, Search(2, 1, 2, required=True)) == {"b1/r2/x2": 1, "b1/r2/x3": 1}


def test_a_preferred_level_gives_way_upwards_and_the_rest_goes_where_it_fits_best() -> None:
    """Five pods fit no rack and no block: the larger block is filled, and the last pod takes the smallest rack."""
    assert place(ROOM, Search(5, 1, 2)) == {"b1/r1/x1": 1, "b2/r1/x4": 1, "b2/r1/x5": 1, "b2/r1/x6": 1, "b2/r1/x7": 1}


def test_a_required_level_that_is_too_small_says_how_much_would_fit() -> None:
    """The best single domain is what counts."""
    with pytest.raises(NoRoom) as refused:
        place(ROOM, Search(5, 1, 2, required=True))
    assert refused.value.fits == 4


def test_no_host_is_given_twice() -> None:
    """The last domain is chosen among those that are not taken yet."""
    assert place({"b/r/x": 2, "b/r/y": 2}, Search(4, 1, 2, required=True)) == {"b/r/x": 2, "b/r/y": 2}


def test_unconstrained_pods_fill_the_fullest_host_that_takes_them_all() -> None:
    """With the profile of least free capacity the smallest host that is enough is taken."""
    assert place({"b/r/x": 4, "b/r/y": 2, "b/s/z": 1}, Search(2, 2, 2, unconstrained=True, least_free=True)) == {"b/r/y": 2}


def test_slices_are_never_torn() -> None:
    """Each rack gets a multiple of the slice size."""
    assert place({"b/r/x": 3, "b/s/y": 3}, Search(4, 0, 1, slice_size=2, required=True)) == {"b/r/x": 2, "b/s/y": 2}


def test_inner_layers_keep_their_units_together() -> None:
    """Within a slice of a block, racks hold multiples of four and hosts multiples of two."""
    room = {f"b/r{rack}/x{rack}{host}": 3 for rack in range(2) for host in range(2)}
    found = place(room, Search(8, 0, 0, slice_size=8, unconstrained=True, inner={1: 4, 2: 2}))
    assert sorted(found.values()) == [2, 2, 2, 2]


def test_the_leader_goes_where_it_costs_the_workers_least() -> None:
    """A leader is put beside workers, not in their place (kueue PR 13766)."""
    room = {"b/r/n0": 1, "b/r/n1": 2, "b/r/n2": 1}
    beside = {"b/r/n0": 0, "b/r/n1": 1, "b/r/n2": 1}
    assert place(room, Search(4, 1, 2, required=True, leader=True), beside) == {"b/r/n0": 1, "b/r/n1": 2, "b/r/n2": 1, "*b/r/n2": 1}


def test_a_host_named_like_a_block_is_another_domain() -> None:
    """Domains are told apart by their whole path (kueue PR 14232)."""
    assert place({"a/b/a": 1, "b/a/b": 1}, Search(2, 0, 2)) == {"a/b/a": 1, "b/a/b": 1}
