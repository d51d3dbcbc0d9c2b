"""Locks between `sparkctl lab` processes; one ends with its process, however that ends."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from sparkctl.lab.paths import lock_file

# No lab can be called so: names of labs begin with a letter or digit.
CACHE_LOCK = "-cache"
NETWORK_LOCK = "-network"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep other processes from what `name` stands for: a lab, or one of the two above. Waits for them."""
    file = lock_file(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
