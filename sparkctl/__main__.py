"""`python -m sparkctl`."""

from sparkctl.cli.main import main

main()
