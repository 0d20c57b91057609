"""``python -m autotune``: the command line."""

from autotune.cli.main import main

main()
