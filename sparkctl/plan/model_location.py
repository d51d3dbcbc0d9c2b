"""Where each host keeps the model, and what has to be copied from where."""

from collections.abc import Mapping
from dataclasses import dataclass

from sparkctl.errors import OperationFailed, UnsafeRefused
from sparkctl.facts.served import ServingFacts
from sparkctl.tools.model_files import FoundModel, ModelAnswer, missing_shards

# Files that must be the same everywhere for ranks to agree: weights, configuration, tokenizer.
_COMPARED = (".safetensors", ".bin", ".json", ".jinja", ".model")


@dataclass(frozen=True)
class ModelCopy:
    """One copy to make: the folder `source_root` of one host becomes `target_root` of another.

    size_bytes: of all files. free_bytes: on the target's file system.
    """

    source_host: str
    source_root: str
    target_host: str
    target_root: str
    size_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class ModelLocation:
    """Where the ranks find the model. reference: the copy that is whole. roots: per host the folder to mount."""

    reference: FoundModel
    roots: Mapping[str, str]
    subs: Mapping[str, str]
    copies: tuple[ModelCopy, ...]


def locate_model(model: str, facts: Mapping[str, ServingFacts]) -> ModelLocation:
    """Find a whole copy, compare the others with it, and plan a copy to every host that has none.

    Raises OperationFailed when no host has the model or two hosts have different files under one name, and
    UnsafeRefused when something incomplete lies where a copy would go, as it may be a download in progress.
    """
    whole = {host: item.model.model for host, item in facts.items() if _is_whole(item.model.model)}
    if not whole:
        raise _nowhere(model, facts)
    source_host, reference = next((host, found) for host, found in whole.items() if found is not None)
    roots, subs, copies = {}, {}, []
    for host, item in facts.items():
        found = whole.get(host)
        if found is not None:
            _require_same(model, source_host, reference, host, found)
            roots[host], subs[host] = found.root, found.sub
            continue
        target, present = _target(reference, item.model)
        if present:
            raise UnsafeRefused(
                f"{target} is there but is not the whole model; it may be a download in progress",
                where=host,
                remedy=f"let it finish, or move it out of the way; on {host}: mv '{target}' '{target}.old'",
            )
        roots[host], subs[host] = target, reference.sub
        copies.append(
            ModelCopy(source_host, reference.root, host, target, reference.total_bytes, item.model.free_bytes)
        )
    return ModelLocation(reference, roots, subs, tuple(copies))


def _is_whole(found: FoundModel | None) -> bool:
    return found is not None and found.weights_bytes > 0 and not missing_shards(found)


def _target(reference: FoundModel, answer: ModelAnswer) -> tuple[str, bool]:
    if reference.sub:
        return answer.hub, answer.hub_present
    return answer.directory, answer.directory_present


def _require_same(model: str, host_a: str, a: FoundModel, host_b: str, b: FoundModel) -> None:
    sizes_a, sizes_b = _sizes(a), _sizes(b)
    different = sorted(name for name in sizes_a.keys() | sizes_b.keys() if sizes_a.get(name) != sizes_b.get(name))
    if not different:
        return
    name = different[0]
    raise OperationFailed(
        f"{model} is not the same on {host_a} and {host_b}: {name} has "
        f"{_size(sizes_a.get(name))} there and {_size(sizes_b.get(name))} here"
        + (f", and {len(different) - 1} more files differ" if len(different) > 1 else ""),
        where=host_b,
        remedy=f"move the wrong one out of the way, sparkctl then copies the other; "
        f"on {host_b}: mv '{b.path}' '{b.path}.old'",
    )


def _sizes(found: FoundModel) -> dict[str, int]:
    return {file.name: file.size_bytes for file in found.files if file.name.endswith(_COMPARED)}


def _size(size_bytes: int | None) -> str:
    return "no such file" if size_bytes is None else f"{size_bytes} bytes"


def _nowhere(model: str, facts: Mapping[str, ServingFacts]) -> OperationFailed:
    host, item = next(iter(facts.items()))
    broken = next(((name, f.model.model) for name, f in facts.items() if f.model.model is not None), None)
    if broken is not None and broken[1] is not None:
        message = f"{model} is not whole: weight files are missing in {broken[1].path} on {broken[0]}"
    else:
        places = [item.model.directory] if model.startswith("/") else [item.model.directory, item.model.hub]
        message = f"no host has the model {model}; looked for {' and '.join(places)} on {', '.join(facts)}"
    fetch = f"hf download {model}" if "/" in model.strip("/") and not model.startswith("/") else (
        f"hf download ORG/NAME --local-dir '{item.model.directory}'"
    )  # fmt: skip
    return OperationFailed(message, remedy=f"on {host}: `{fetch}`; sparkctl copies it to the others over the rails")
