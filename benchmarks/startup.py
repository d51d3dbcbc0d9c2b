"""`sparkctl --help` against the bare import of the library that its command line is made with.

Target: at most 1.6 times. Run: python -m benchmarks.startup
"""

import sys
from pathlib import Path

from benchmarks.side_by_side import contest


def main() -> None:
    """Print the ratio."""
    program = Path(sys.executable).with_name("sparkctl")
    bare = contest([str(program), "--help"], [sys.executable, "-c", "import typer"], pairs=15, warm_up=2)
    print(f"sparkctl --help / import typer: {bare}")


if __name__ == "__main__":
    main()
