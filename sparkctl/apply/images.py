"""Fetches an engine image on the hosts that lack it."""

from collections.abc import Sequence

from sparkctl.apply.progress import Progress
from sparkctl.errors import OperationFailed
from sparkctl.tools.docker import parse_pull_line, pull_command
from sparkctl.transport.command import Transport
from sparkctl.transport.fanout import on_all


def pull_image(reference: str, transports: Sequence[Transport], progress: Progress) -> None:
    """Pull on all hosts at once; progress counts layers.

    Raises OperationFailed with Docker's own words for the first host that could not; layers that came stay there.
    """
    layers: dict[str, dict[str, bool]] = {transport.host: {} for transport in transports}

    def pull(transport: Transport) -> None:
        def on_line(line: str) -> None:
            event = parse_pull_line(line)
            if event is not None:
                layer, complete = event
                layers[transport.host][layer] = complete or layers[transport.host].get(layer, False)
                every = [done for host in layers.values() for done in host.values()]
                progress.update("layers", done=sum(every), total=len(every))

        result = transport.stream(pull_command(reference), on_line)
        if not result.ok:
            raise OperationFailed(
                f"cannot pull {reference}: {result.last_words()}",
                where=transport.host,
                remedy=f"on {transport.host}: `docker pull {reference}`; nvcr.io wants `docker login nvcr.io` first. "
                "An image that exists on one host only: `docker save` there, `docker load` here",
            )

    on_all(transports, pull).require_all()
