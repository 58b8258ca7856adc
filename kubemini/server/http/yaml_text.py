"""YAML as ``sigs.k8s.io/yaml`` writes it: sorted keys, double quotes where a text needs some, and nothing by reference."""

from __future__ import annotations

from typing import Any, Final

import yaml
from yaml import SafeDumper

_ALSO_BOOLEAN: Final = frozenset(("y", "Y", "n", "N"))
"""What Go's YAML reads as a boolean, and PyYAML as text."""


class _Dumper(SafeDumper):
    """Trees share what is equal; a reader of YAML is shown each part where it stands."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def choose_scalar_style(self) -> str:
        style: str = super().choose_scalar_style()
        return '"' if style == "'" else style


def _text(dumper: SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else '"' if value in _ALSO_BOOLEAN else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(tree: Any) -> bytes:
    """Return a tree as YAML."""
    text: str = yaml.dump(tree, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=1 << 30)
    return text.encode()
