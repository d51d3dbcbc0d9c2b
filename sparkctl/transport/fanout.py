"""One call on many hosts at the same time; a dead host is an outcome, not the end of the others."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from sparkctl.errors import SparkctlError
from sparkctl.transport.command import Transport

T = TypeVar("T")


@dataclass(frozen=True)
class Outcomes(Mapping[str, T]):
    """What a call brought on each host, in inventory order.

    values: of the hosts where it worked. errors: of the others. As a mapping it holds the values only.
    """

    values_by_host: Mapping[str, T]
    errors: Mapping[str, SparkctlError]

    def __getitem__(self, host: str) -> T:
        return self.values_by_host[host]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_by_host)

    def __len__(self) -> int:
        return len(self.values_by_host)

    def require_all(self) -> Mapping[str, T]:
        """The values when every host answered. Raises the first host's error otherwise."""
        for error in self.errors.values():
            raise error
        return self.values_by_host


def on_all(transports: Sequence[Transport], call: Callable[[Transport], T]) -> Outcomes[T]:
    """Call `call` with every transport, all at once. Errors of class SparkctlError become outcomes."""

    def attempt(transport: Transport) -> tuple[T | None, SparkctlError | None]:
        try:
            return call(transport), None
        except SparkctlError as error:
            return None, error

    if not transports:
        return Outcomes({}, {})
    with ThreadPoolExecutor(max_workers=len(transports)) as pool:
        try:
            pairs = list(pool.map(attempt, transports))
        except KeyboardInterrupt:
            # Leaving the pool waits for its threads; without their connections they end at once.
            for transport in transports:
                transport.close()
            raise
    values: dict[str, T] = {}
    errors: dict[str, SparkctlError] = {}
    for transport, (value, error) in zip(transports, pairs, strict=True):
        if error is not None:
            errors[transport.host] = error
        else:
            values[transport.host] = value  # type: ignore[assignment]  # a value of T, which may be None itself
    return Outcomes(values, errors)
