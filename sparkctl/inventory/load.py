"""Inventory file → Cluster. `parse_cluster` is pure; every mistake is reported at once, with its line."""

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network
from pathlib import Path
from types import MappingProxyType

import platformdirs
import pydantic
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedBase, CommentedMap
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from sparkctl.errors import InvalidInventory, UsageError
from sparkctl.inventory.model import Cluster, Host, LinkWishes, ServingWishes
from sparkctl.inventory.schema import InventoryFile

ENVIRONMENT_VARIABLE = "SPARKCTL_INVENTORY"
_REMEDY = (
    "correct the lines above, then `sparkctl inventory check {path}`; inventory/example.yaml documents every field"
)


@dataclass(frozen=True, order=True)
class _Problem:
    line: int
    field: str
    text: str


def inventory_path(asked_for: Path | None) -> Path:
    """The file to use: the one asked for, else $SPARKCTL_INVENTORY, ./cluster.yaml, ./inventory/cluster.yaml, the
    user's configuration folder.

    Raises UsageError naming the places when there is none.
    """
    if asked_for is not None:
        candidates = [asked_for]
    elif os.environ.get(ENVIRONMENT_VARIABLE):
        candidates = [Path(os.environ[ENVIRONMENT_VARIABLE])]
    else:
        user_file = platformdirs.user_config_path("sparkctl") / "cluster.yaml"
        candidates = [Path("cluster.yaml"), Path("inventory/cluster.yaml"), user_file]
    for path in candidates:
        if path.is_file():
            return path
    raise UsageError(
        f"no inventory file at {' or '.join(str(path) for path in candidates)}",
        remedy="name one with `-i FILE`, or let sparkctl write it: `sparkctl discover --write cluster.yaml HOST…`",
    )


def load_cluster(path: Path) -> Cluster:
    """The cluster described by a file. Raises InvalidInventory or, when the file cannot be read, UsageError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"cannot read the inventory: {error}", where=str(path), remedy="check path and rights"
        ) from error
    return parse_cluster(text, str(path))


def parse_cluster(text: str, source: str) -> Cluster:
    """The cluster described by YAML text; `source` is named in errors. Raises InvalidInventory with all problems."""
    try:
        document = YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else 1
        raise _invalid(source, [_Problem(line, "YAML", str(error.problem or error.context or error))]) from error
    except YAMLError as error:
        raise _invalid(source, [_Problem(1, "YAML", str(error))]) from error
    if not isinstance(document, CommentedMap):
        raise _invalid(source, [_Problem(1, "file", "must be a mapping with `cluster:` and `hosts:`")])
    problems: list[_Problem] = []
    try:
        parsed = InventoryFile.model_validate(_plain(document))
    except pydantic.ValidationError as error:
        problems.extend(_problem(document, detail) for detail in error.errors(include_url=False))
        problems.extend(_duplicates(document))
        raise _invalid(source, problems) from error
    problems.extend(_duplicates(document))
    if problems:
        raise _invalid(source, problems)
    return _cluster(parsed, source)


def _cluster(parsed: InventoryFile, source: str) -> Cluster:
    ssh = parsed.ssh
    hosts = tuple(
        Host(
            name=host.name,
            address=host.address or host.name,
            user=host.user or ssh.user,
            port=host.port or ssh.port,
            key=host.key or ssh.key,
            known_hosts=host.known_hosts or ssh.known_hosts,
        )
        for host in parsed.hosts
    )
    links, serving = parsed.links, parsed.serving
    return Cluster(
        name=parsed.cluster,
        hosts=hosts,
        links=LinkWishes(IPv4Network(links.pool), links.mtu, links.expect_gbit_per_s),
        serving=ServingWishes(
            model=serving.model,
            image=serving.image,
            models_dir=serving.models_dir,
            port=serving.port,
            master_port=serving.master_port,
            pp=serving.pp,
            tp=serving.tp,
            engine_args=serving.engine_args,
            env=MappingProxyType(dict(serving.env)),
        ),
        source=source,
    )


def _plain(value: object) -> object:
    """Plain containers in place of ruamel's, so that strict validation sees the types it names."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    return value


def _problem(document: CommentedMap, detail: Mapping[str, object]) -> _Problem:
    location = tuple(part for part in _sequence(detail["loc"]) if isinstance(part, str | int))
    field = ".".join(str(part) for part in location) or "file"
    message = str(detail["msg"]).removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        message = "unknown field" + _suggestion(str(location[-1]), location[:-1])
    elif detail["type"] == "missing":
        message = "is required"
    return _Problem(_line(document, location), field, message)


def _suggestion(word: str, parents: tuple[str | int, ...]) -> str:
    model: type[pydantic.BaseModel] = InventoryFile
    for part in parents:
        if isinstance(part, str):
            annotation = model.model_fields[part].annotation
            inner = next(iter(getattr(annotation, "__args__", ())), annotation)
            if not (isinstance(inner, type) and issubclass(inner, pydantic.BaseModel)):
                return ""
            model = inner
    close = difflib.get_close_matches(word, model.model_fields, n=1)
    return f"; did you mean `{close[0]}`?" if close else f"; known: {', '.join(model.model_fields)}"


def _line(document: CommentedMap, location: Sequence[str | int]) -> int:
    """The line (from 1) of the deepest part of `location` that stands in the file."""
    node: object = document
    line = 1
    for part in location:
        if not isinstance(node, CommentedBase):
            break
        try:
            position = node.lc.key(part) if isinstance(part, str) else node.lc.item(part)
            child = node[part]  # type: ignore[index]  # CommentedBase is a mapping or a sequence
        except (KeyError, IndexError):
            break
        line, node = position[0] + 1, child
    return line


def _duplicates(document: CommentedMap) -> Iterator[_Problem]:
    """Two hosts of one name, or two that are reached at the same address and port."""
    hosts = document.get("hosts")
    first: dict[tuple[str, str], int] = {}
    for index, host in enumerate(_sequence(hosts)):
        if not isinstance(host, Mapping):
            continue
        ssh = document.get("ssh")
        default_port = ssh.get("port", 22) if isinstance(ssh, Mapping) else 22
        keys = {"name": str(host.get("name")), "address": f"{host.get('address')}:{host.get('port', default_port)}"}
        for field, value in keys.items():
            if field not in host:
                continue
            line = _line(document, ("hosts", index, field))
            if (field, value) in first:
                shown = str(host[field])
                yield _Problem(line, f"hosts.{index}.{field}", f"{shown} is already used in line {first[field, value]}")
            else:
                first[field, value] = line


def _sequence(value: object) -> Sequence[object]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _invalid(source: str, problems: Sequence[_Problem]) -> InvalidInventory:
    lines = [f"{source}:{problem.line}: {problem.field}: {problem.text}" for problem in sorted(set(problems))]
    count = "1 mistake" if len(lines) == 1 else f"{len(lines)} mistakes"
    return InvalidInventory(
        f"the inventory has {count}", problems=lines, remedy=_REMEDY.format(path=source), where=source
    )
