"""Where a model lies on a host, and which files it has. Weights are never read, only listed."""

from dataclasses import dataclass
from enum import StrEnum

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.command import Command, CommandResult

# One loop on the host instead of a round trip per place. Lines are tab-separated; `config` ends them and is followed
# by the text of config.json. Layout of the hub cache: huggingface_hub documentation, "Understand caching".
_SCRIPT = r"""
model=${1%/}; dir=${2%/}
case $dir in '~') dir=$HOME ;; '~/'*) dir=$HOME/${dir#'~/'} ;; esac
hub=${HF_HUB_CACHE:-${HF_HOME:-$HOME/.cache/huggingface}/hub}
case $model in /*) want=$model ;; *) want=$dir/$model ;; esac
repo=$hub/models--$(printf %s "$model" | sed 's|/|--|g')
up=$dir; while [ ! -d "$up" ] && [ "$up" != / ]; do up=$(dirname "$up"); done
printf 'home\t%s\nmodels_dir\t%s\n' "$HOME" "$dir"
printf 'free\t%s\n' "$(df -B1 --output=avail "$up" | tail -n 1 | tr -d ' ')"
printf 'directory\t%s\t%s\n' "$want" "$([ -e "$want" ] && echo present || echo absent)"
printf 'hub\t%s\t%s\n' "$repo" "$([ -e "$repo" ] && echo present || echo absent)"
root=; sub=; kind=
if [ -f "$want/config.json" ]; then
  root=$want; kind=directory
elif [ "${model#/}" = "$model" ] && [ -f "$repo/refs/main" ]; then
  sub=snapshots/$(cat "$repo/refs/main")
  [ -f "$repo/$sub/config.json" ] && { root=$repo; kind=hub; }
fi
[ -n "$root" ] || exit 0
printf 'found\t%s\t%s\t%s\n' "$kind" "$root" "$sub"
cd "$root/$sub" && find -L . -maxdepth 3 -type f ! -path './.*' -printf 'file\t%s\t%P\n'
printf 'config\n'
cat config.json
"""
_INDEX = "model.safetensors.index.json"


class ModelPlace(StrEnum):
    """How a model is kept on a host."""

    DIRECTORY = "directory"
    HUB = "hub"


@dataclass(frozen=True)
class ModelFile:
    """One file of a model, with its path below the model's folder."""

    name: str
    size_bytes: int


@dataclass(frozen=True)
class FoundModel:
    """A model that a host has.

    root: the folder that must be visible in a container; for the hub cache it is the whole repository folder, because
    its snapshots are links to blobs. sub: the model's folder below root, empty when root is the model.
    files: by name. config: text of config.json.
    """

    place: ModelPlace
    root: str
    sub: str
    files: tuple[ModelFile, ...]
    config: str

    @property
    def path(self) -> str:
        """The model's folder on the host."""
        return f"{self.root}/{self.sub}" if self.sub else self.root

    @property
    def total_bytes(self) -> int:
        """Size of all files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def weights_bytes(self) -> int:
        """Size of the weight files the engine loads: those beside config.json, safetensors before older formats."""
        for suffix in (".safetensors", ".bin", ".pt"):
            sizes = [file.size_bytes for file in self.files if file.name.endswith(suffix) and "/" not in file.name]
            if sizes:
                return sum(sizes)
        return 0


@dataclass(frozen=True)
class ModelAnswer:
    """What a host said about one model.

    model: None when it has no complete copy. directory, hub: where a copy would lie; *_present: something is there,
    complete or not. free_bytes: on the file system of models_dir. models_dir and home are absolute.
    """

    home: str
    models_dir: str
    free_bytes: int
    directory: str
    directory_present: bool
    hub: str
    hub_present: bool
    model: FoundModel | None


def model_command(model: str, models_dir: str) -> Command:
    """Look for `model`: an absolute path, a name below `models_dir`, or an id in the hub cache, in this order."""
    return Command(("sh", "-c", _SCRIPT, "sparkctl", model, models_dir))


def parse_model(result: CommandResult) -> ModelAnswer:
    """What the host has of the model.

    Raises UnexpectedOutput when a line is missing, for example because the folder cannot be read.
    """
    head, marker, config = result.stdout.partition("\nconfig\n")
    rows = [line.split("\t") for line in head.splitlines()]
    named = {row[0]: row[1:] for row in rows if row[0] != "file"}
    files = tuple(sorted((ModelFile(row[2], int(row[1])) for row in rows if row[0] == "file"), key=lambda f: f.name))
    try:
        found = named.get("found")
        model = FoundModel(ModelPlace(found[0]), found[1], found[2], files, config) if found and marker else None
        return ModelAnswer(
            home=named["home"][0],
            models_dir=named["models_dir"][0],
            free_bytes=int(named["free"][0]),
            directory=named["directory"][0],
            directory_present=named["directory"][1] == "present",
            hub=named["hub"][0],
            hub_present=named["hub"][1] == "present",
            model=model,
        )
    except (KeyError, IndexError, ValueError) as error:
        raise UnexpectedOutput(
            f"looking for the model failed: {result.last_words()}",
            where=result.host,
            remedy=f"check that the models folder on {result.host} can be read by our user",
        ) from error


def missing_shards(model: FoundModel) -> bool:
    """Whether a sharded model lacks shards: an index is there, but fewer files than its names count to.

    The names tell how many there are: `model-00001-of-00003.safetensors`.
    """
    shards = [file.name for file in model.files if "-of-" in file.name and file.name.endswith(".safetensors")]
    if not shards:
        return any(file.name == _INDEX for file in model.files)
    total = shards[0].rpartition("-of-")[2].removesuffix(".safetensors")
    return total.isdigit() and len([name for name in shards if name.endswith(f"-of-{total}.safetensors")]) < int(total)
