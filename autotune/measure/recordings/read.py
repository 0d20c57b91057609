"""Reads what another tuner has recorded, in one of two formats.

A *Kernel Tuner cache file* has one entry for each configuration under ``cache``, with times in milliseconds,
or a text such as ``RuntimeFailedConfig`` in the place of a time. A *T4 file*, the exchange format of
auto-tuners, has a list of ``results`` with their units. Either may be gzipped, and may have been cut short by
a crash: all complete entries count, and :attr:`Recording.damage` says what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autotune.errors import InputError, Problem, nearest
from autotune.measure.recordings.formats import Reader
from autotune.measure.recordings.kernel_tuner import KernelTunerReader
from autotune.measure.recordings.recording import Recording
from autotune.measure.recordings.salvage import salvage
from autotune.measure.recordings.t4 import T4Reader


def read_recording(path: str | Path) -> Recording:
    """Read a Kernel Tuner cache file or a T4 file, gzipped or not, whole or cut short.

    Raises :class:`InputError`, which says what the file lacks, if it is neither or has no complete entry.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(Problem(f"cannot read {path}: {error.strerror or error}")) from error
    salvaged = salvage(data, frozenset({"cache", "results"}))
    document = salvaged.document
    if isinstance(document.get("cache"), dict):
        reader: Reader = KernelTunerReader(path, document)
    elif isinstance(document.get("results"), list):
        reader = T4Reader(path, document)
    else:
        raise _unknown_form(path, document, salvaged.damage)
    recording = reader.read(salvaged.damage)
    if not recording.entries:
        after = f": {salvaged.damage}" if salvaged.damage else ""
        raise InputError(Problem(f"the recording {path} holds no complete configuration{after}"))
    return recording


_EXPECTED_OF = {
    "cache": "'cache' must be an object with one entry for each configuration",
    "results": "'results' must be a list",
    "autotune_recipes": "it is a file of recipes: autotune recipes import FILE",
    "ConfigurationSpace": "it is a T1 file, a space without measurements: autotune convert FILE",
}
"""Hints for a file that has such a key but is not a recording."""


def _unknown_form(path: Path, document: Mapping[str, object], damage: str) -> InputError:
    hints = [_EXPECTED_OF.get(name) or nearest(name, ("cache", "results")) for name in document]
    return InputError(
        Problem(
            f"{path} is not a recording that can be read" + (f": {damage}" if damage else ""),
            expected="a Kernel Tuner cache file (a JSON object with 'tune_params' and 'cache')"
            " or a T4 file (one with 'results')",
            hint=next((hint for hint in hints if hint), ""),
        )
    )
