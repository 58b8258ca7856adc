"""From the name of a fleet, a file or a mapping to Node objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from kubemini.api.trees import Tree
from kubemini.fleets.groups import nodes_of, parse_group
from kubemini.fleets.presets import PRESETS
from kubemini.fleets.recorded import recorded_nodes
from kubemini.machinery.errors import ConfigError

Source = str | Path | Mapping[str, Any] | Sequence[Any] | None
"""What names or describes a fleet: see `load_fleet`."""

_FILES = {".yaml", ".yml", ".json"}
_reference = re.compile(r"([a-z0-9-]+)(?::(\d+))?").fullmatch


def load_fleet(source: Source) -> list[Tree]:
    """Return the Node objects of a fleet, in a fixed order: metadata, spec, capacity and allocatable; conditions are the node controller's.

    `source` is one of

    - ``"none"`` or None: no nodes;
    - the name of a preset, with how many units of it: ``"h100-2racks"``, ``"v5e-4x4:8"``; several joined with ``+``;
    - the path of a YAML or JSON file, in the form of a mapping or list as below, or with Node objects as kubectl prints them;
    - a mapping ``{nodes: [group, …], units: 1}``, a list of groups, or a single group; a text in place of a group names a preset.

    Raise `ConfigError` that names the wrong field and what would be right.
    """
    if source is None or source == "none":
        return []
    if isinstance(source, Path):
        return _from_file(source)
    if isinstance(source, str):
        return list(_from_text(source))
    return _distinct(_from_tree(source, "fleet"), "fleet")


# presets are asked for again and again by tests that make thousands of clusters; the trees are immutable
@lru_cache(maxsize=64)
def _presets(text: str) -> tuple[Tree, ...]:
    return tuple(_distinct((node for part in text.split("+") for node in _from_preset(part, "fleet")), f"fleet {text}"))


def _from_text(text: str) -> Iterable[Tree]:
    path = Path(text)
    if path.suffix in _FILES or "/" in text or "\\" in text:
        return _from_file(path)
    return _presets(text.replace(" ", ""))


def _from_preset(text: str, where: str) -> list[Tree]:
    found = _reference(text)
    preset = PRESETS.get(found[1]) if found else None
    if found is None or preset is None:
        raise ConfigError(
            f"{where}: no fleet is called {text!r}; write none, the path of a .yaml file, or a preset ({', '.join(PRESETS)}), "
            "with a number of units after a colon if you like, several joined with +"
        )
    units = int(found[2]) if found[2] else preset.units
    groups = [parse_group(tree, f"preset {text}: nodes[{offset}]") for offset, tree in enumerate(preset.nodes)]
    return [
        node for offset, group in enumerate(groups) for node in nodes_of(group, where=f"preset {text}: nodes[{offset}]", offset=offset, units=units)
    ]


def _from_file(path: Path) -> list[Tree]:
    import yaml

    where = f"fleet {path}"
    try:
        documents = list(yaml.load_all(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{where}: the file cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{where}: the file is no YAML: {' '.join(str(error).split())}") from None
    return _distinct((node for document in documents if document is not None for node in _from_tree(document, where)), where)


def _from_tree(tree: object, where: str) -> Iterable[Tree]:
    if isinstance(tree, Mapping):
        if "kind" in tree:
            return recorded_nodes(tree, where)
        if "nodes" not in tree:
            return nodes_of(parse_group(tree, where), where=where)
        unknown = [key for key in tree if key not in {"nodes", "units", "description"}]
        if unknown:
            raise ConfigError(f"{where}: {unknown[0]}: no such field; a fleet has nodes, units and description")
        units = tree.get("units", 1)
        if isinstance(units, bool) or not isinstance(units, int) or units < 0:
            raise ConfigError(f"{where}: units: {units!r} is no number of units; write 1 or more")
        nodes = tree["nodes"]
        return _from_groups([nodes] if isinstance(nodes, Mapping) else nodes, f"{where}: nodes", units)
    return _from_groups(tree, f"{where}: nodes", 1)


def _from_groups(groups: object, where: str, units: int) -> Iterable[Tree]:
    if groups is None:
        return
    if isinstance(groups, str) or not isinstance(groups, Sequence):
        raise ConfigError(f"{where}: expected a list of node groups, found {groups!r}")
    for offset, tree in enumerate(groups):
        inner = f"{where}[{offset}]"
        if isinstance(tree, str):
            yield from _from_preset(tree, inner)
        elif isinstance(tree, Mapping) and "kind" in tree:
            yield from recorded_nodes(tree, inner)
        else:
            yield from nodes_of(parse_group(tree, inner), where=inner, offset=offset, units=units)


def _distinct(nodes: Iterable[Tree], where: str) -> list[Tree]:
    found: dict[str, Tree] = {}
    for node in nodes:
        name = node["metadata"]["name"]
        if name in found:
            raise ConfigError(f"{where}: two nodes are called {name}; give the groups different names, or put {{i}} into the name")
        found[name] = node
    return list(found.values())
