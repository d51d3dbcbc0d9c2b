"""The inventory file of a lab: from there on, its nodes are hosts like any others."""

from collections.abc import Mapping
from io import StringIO
from pathlib import Path

from ruamel.yaml import YAML

from sparkctl.errors import UnsafeRefused
from sparkctl.lab.disk import give_to_caller
from sparkctl.lab.node_files import USER
from sparkctl.lab.status import LabHandle

_MARK = "# Virtual Sparks. Written by `sparkctl lab up`, which writes it anew each time.\n"


def inventory_path(lab: str, wanted: Path | None) -> Path:
    """Where the inventory goes: as wanted, else `inventory/<lab>.yaml` below the working directory.

    Raises UnsafeRefused if something is there that no lab wrote.
    """
    path = wanted or Path("inventory", f"{lab}.yaml")
    if path.exists() and not path.read_text().startswith(_MARK):
        raise UnsafeRefused(
            "this inventory was not written by a lab, so it is not overwritten",
            remedy="choose another file with `--inventory-out`",
            where=str(path),
        )
    return path


def render_inventory(lab: LabHandle, serving: Mapping[str, object] | None = None) -> str:
    """Text of the inventory of a lab that has a spec. serving: its section `serving`, left out if None.

    `expect_gbit_per_s` is what both twins of a cable carry together, in the lab, not on a Spark.
    """
    rail_mbit_per_s = lab.spec.rail_mbit_per_s if lab.spec else 0
    content: dict[str, object] = {
        "cluster": lab.name,
        "ssh": {"user": USER, "port": 22, "key": str(lab.key), "known_hosts": str(lab.known_hosts)},
        "hosts": [{"name": node.name, "address": str(node.address)} for node in lab.nodes],
        "links": {"expect_gbit_per_s": 2 * rail_mbit_per_s / 1000},
    }
    if serving is not None:
        content["serving"] = dict(serving)
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    text = StringIO()
    yaml.dump(content, text)
    return _MARK + text.getvalue()


def write_inventory(path: Path, text: str) -> bool:
    """Write an inventory file, owned by whoever typed `sudo`; False if it said the same already."""
    if path.exists() and path.read_text() == text:
        return False
    if not path.parent.exists():
        path.parent.mkdir(parents=True)
        give_to_caller(path.parent)
    path.write_text(text)
    give_to_caller(path)
    return True
