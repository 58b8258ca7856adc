"""The tables of docs/fleets.md say what the code does. Run this file to write them anew."""

from collections import Counter
from pathlib import Path

import pytest

from kubemini.fleets import MACHINES, PRESETS, load_fleet
from kubemini.fleets.groups import NodeGroup

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "fleets.md"


def presets() -> str:
    """Return the table of presets."""
    rows = ["| preset | nodes | of machine | devices | unit | what it is |", "| --- | --- | --- | --- | --- | --- |"]
    for name, preset in PRESETS.items():
        nodes = load_fleet(name)
        machines = {group.get("machine", "") for group in preset.nodes}
        devices: Counter[str] = Counter()
        for node in nodes:
            devices.update({key: int(value) for key, value in node["status"]["capacity"].items() if "/" in key})
        shown = ", ".join(f"{count} `{device}`" for device, count in devices.items())
        machine = ", ".join(f"`{each}`" if each else "plain" for each in sorted(machines))
        rows.append(f"| `{name}` | {len(nodes)} | {machine} | {shown} | {preset.unit} ({preset.units}) | {preset.description} |")
    return "\n".join(rows)


def machines() -> str:
    """Return the table of machine types."""
    rows = ["| machine | of | accelerators | vCPU | memory | allocatable | slices |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for machine in MACHINES.values():
        slices = " ".join(machine.topologies) + (f" and cubes up to {machine.cube_limit} chips" if machine.cube_limit else "")
        left = f"{machine.allocatable_cpu}m, {machine.allocatable_memory}Mi"
        provider = machine.provider.upper()
        rows.append(f"| `{machine.name}` | {provider} | {machine.accelerator} | {machine.cpu} | {machine.memory} | {left} | {slices} |")
    return "\n".join(rows)


TABLES = {"presets": presets, "machines": machines}


def written(text: str) -> str:
    """Return the document with its tables written anew."""
    for name, table in TABLES.items():
        head, start, rest = text.partition(f"<!-- {name}: written by tests/unit/test_fleet_docs.py -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        text = f"{head}{start}\n{table()}\n\n{end}{tail}"
    return text


@pytest.mark.parametrize("name", list(TABLES))
def test_the_table_is_what_the_code_does(name: str) -> None:
    """Each generated table stands in the document as the data says; `python tests/unit/test_fleet_docs.py` writes it."""
    assert TABLES[name]() in DOCUMENT.read_text("utf-8")


def test_the_example_file_is_a_fleet(tmp_path: Path) -> None:
    """The YAML of the document loads, and makes as many nodes as it says."""
    example = DOCUMENT.read_text("utf-8").partition("```yaml\n")[2].partition("```")[0]
    path = tmp_path / "lab.yaml"
    path.write_text(example, "utf-8")
    assert len(load_fleet(path)) == 2 + 32 + 4 * 8 + 10


def test_every_field_of_a_group_is_explained() -> None:
    """The table of fields names each field that a node group has."""
    text = DOCUMENT.read_text("utf-8")
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in row.replace("`", " ").replace(",", " ").split()}
    assert set(NodeGroup.model_fields) <= named


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text("utf-8")), "utf-8")
