"""Many commands in one round trip: packed into one shell script, run side by side on the host, taken apart again.

Connection latency, not the programs, is what makes reading a host slow; a bundle costs one round trip and about as
long as its slowest member.
"""

import re
import shlex
from collections.abc import Sequence

from sparkctl.errors import UnexpectedOutput
from sparkctl.transport.command import Command, CommandResult

# The margin that the bundle as a whole gets on top of its slowest member.
_OVERHEAD_S = 10.0
_FRAME = re.compile(r"\[sparkctl (\d+) (\d+) (\d+) (\d+)\]\n")


def pack_commands(commands: Sequence[Command]) -> Command:
    """One command that runs all of `commands` at the same time and prints their framed results.

    Every member keeps its own time limit and its own sudo. Members must not need standard input.
    """
    script = ["d=$(mktemp -d) || exit 1", "trap 'rm -rf \"$d\"' EXIT", "export LC_ALL=C"]
    for index, command in enumerate(commands):
        line = command.shell_line()
        script.append(f'{{ {line}; }} >"$d/{index}.o" 2>"$d/{index}.e" </dev/null; echo $? >"$d/{index}.c"')
        script[-1] = f"( {script[-1]} ) &"
    script.append("wait")
    script.append(
        f"i=0; while [ $i -lt {len(commands)} ]; do "
        'printf "[sparkctl %s %s %s %s]\\n" $i "$(cat "$d/$i.c")" "$(wc -c <"$d/$i.o")" "$(wc -c <"$d/$i.e")"; '
        'cat "$d/$i.o" "$d/$i.e"; i=$((i+1)); done'
    )
    longest = max((command.timeout_s for command in commands), default=0.0)
    return Command(argv=("sh", "-c", "\n".join(script)), timeout_s=longest + _OVERHEAD_S)


def unpack_results(result: CommandResult, commands: Sequence[Command]) -> tuple[CommandResult, ...]:
    """The results of the members of a bundle, in the order of `commands`.

    Raises UnexpectedOutput when the host did not return exactly one frame per command.
    """
    rest = result.stdout.encode("utf-8", "surrogateescape")
    results: list[CommandResult] = []
    for index, command in enumerate(commands):
        head, newline, tail = rest.partition(b"\n")
        match = _FRAME.fullmatch((head + newline).decode("utf-8", "replace"))
        if match is None or int(match[1]) != index:
            raise UnexpectedOutput(
                f"the host returned {index} of {len(commands)} results ({result.last_words()})",
                where=result.host,
                remedy=f"check that /tmp on {result.host} is writable and not full, then run the command again",
            )
        out_size, err_size = int(match[3]), int(match[4])
        stdout, stderr, rest = tail[:out_size], tail[out_size : out_size + err_size], tail[out_size + err_size :]
        results.append(
            CommandResult(
                host=result.host,
                command=command,
                exit_code=int(match[2]),
                stdout=stdout.decode("utf-8", "surrogateescape"),
                stderr=stderr.decode("utf-8", "surrogateescape"),
            )
        )
    return tuple(results)


def shell(script: str, *, sudo: bool = False, timeout_s: float = 30.0) -> Command:
    """A small POSIX shell script as a command, for loops over /sys that no single program prints."""
    return Command(argv=("sh", "-c", script), sudo=sudo, timeout_s=timeout_s)


def quoted(*words: str) -> str:
    """Words as one safely quoted piece of a shell script."""
    return shlex.join(words)
