"""Data files of the package as typed values."""

from importlib.resources import files
from typing import Any

from ruamel.yaml import YAML

from sparkctl.catalog.model import Recipe


def load_recipes() -> tuple[Recipe, ...]:
    """The recipes shipped with sparkctl, in the file's order; exactly one is the default."""
    text = files("sparkctl.catalog").joinpath("data", "recipes.yaml").read_text(encoding="utf-8")
    return parse_recipes(text)


def parse_recipes(text: str) -> tuple[Recipe, ...]:
    """Recipes from YAML.

    Raises ValueError when a field is missing or unknown, or there is not exactly one default: the file is ours, so
    that is a bug, not a mistake of the user.
    """
    document = YAML(typ="safe").load(text)
    recipes = tuple(_recipe(entry, document["image"]) for entry in document["recipes"])
    if sum(not recipe.models for recipe in recipes) != 1:
        raise ValueError("recipes.yaml must have exactly one recipe without models")
    return recipes


def _recipe(entry: dict[str, Any], image: dict[str, str]) -> Recipe:
    unknown = entry.keys() - {"name", "models", "image", "engine_args", "env", "source", "proven", "memory_note"}
    if unknown:
        raise ValueError(f"unknown fields in recipe: {sorted(unknown)}")
    return Recipe(
        name=entry["name"],
        models=tuple(entry.get("models", ())),
        image=entry.get("image", image["reference"]),
        engine_args=tuple(str(word) for word in entry.get("engine_args", ())),
        env={key: str(value) for key, value in entry.get("env", {}).items()},
        source=entry["source"],
        proven=entry["proven"],
        memory_note=entry.get("memory_note", ""),
    )
