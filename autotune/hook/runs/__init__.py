"""The parts of ``autotune.run``: the link to a search, reports, ranks and values."""
