"""What is published about serving models on Sparks, as typed values."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Recipe:
    """How to start an engine for some models.

    models: patterns on the last part of a model's name, lower case; empty for the default.
    image: reference with a pinned tag. engine_args, env: given to every rank.
    source: where image and arguments come from. proven: by whom and on what; never left empty.
    """

    name: str
    models: tuple[str, ...]
    image: str
    engine_args: tuple[str, ...]
    env: Mapping[str, str]
    source: str
    proven: str
    memory_note: str = ""


def choose_recipe(recipes: tuple[Recipe, ...], model: str) -> Recipe:
    """The first recipe with a pattern that matches, else the one without patterns.

    model: as the user names it: path, name or Hugging Face id. Raises StopIteration never: `load_recipes` guarantees
    that there is a default.
    """
    name = model.rstrip("/").rpartition("/")[2].lower()
    for recipe in recipes:
        if any(fnmatchcase(name, pattern) for pattern in recipe.models):
            return recipe
    return next(recipe for recipe in recipes if not recipe.models)
