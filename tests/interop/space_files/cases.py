"""Sources with kernels of Triton, and the spaces that come of them."""

from __future__ import annotations

from pathlib import Path

from autotune.interop.space_files.triton_configs import convert
from autotune.space.reading.reader import read_spec
from autotune.space.space import Space

HEAD = "import torch, triton\nimport triton.language as tl\nfrom triton import Config\n"


def write(folder: Path, text: str) -> Path:
    file = folder / "kernels.py"
    file.write_text(HEAD + text)
    return file


def read_back(file: Path, **arguments: str) -> Space:
    """The space as its own file says it."""
    output = file.parent / "spaces" / "space.yaml"
    output.parent.mkdir(exist_ok=True)
    output.write_text(convert(file, **arguments, output=output).text())
    return read_spec(output).space
