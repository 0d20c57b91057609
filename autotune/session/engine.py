"""Which code proposes trials: a hash of autotune's own, since a version says little during development."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import autotune
from autotune.provenance.code.files import freeze, named
from autotune.provenance.document import Document, digest

PARTS = ("space", "search", "session/observing.py")
"""The parts of the package that a proposal depends on."""


@cache
def engine() -> Document:
    """The version of autotune and a hash of the files in :data:`PARTS`.

    Read once: it takes 20 ms, and what is loaded stays the same when a file is edited later.
    """
    package = Path(autotune.__file__).parent
    files = {
        name: path for name, path in named(package / part for part in PARTS).items() if path.suffix == ".py"
    }
    code = digest({name: freeze(path, name)[0].sha256 for name, path in files.items()})
    return {"version": autotune.__version__, "code": code}
