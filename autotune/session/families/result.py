"""What the search of a family found: a result for each workload, and the matrix across them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autotune.session.families.matrix import Matrix
from autotune.session.result import Result
from autotune.space.configuration import plain


@dataclass(frozen=True)
class ManyResult:
    """The answer of a family of studies, workload by workload in the order of the file."""

    name: str
    results: tuple[Result, ...]
    """The result of each workload; ``best`` is its winner."""
    matrix: Matrix
    """Its rows are in the order of :attr:`results`."""
    failures: Mapping[str, str] = field(default_factory=dict)
    """By the label of a workload: why it was given up."""
    reason: str = ""
    """Why the search ended."""

    @property
    def succeeded(self) -> bool:
        """Whether any workload has a configuration that works."""
        return any(result.best is not None for result in self.results)

    def to_document(self) -> dict[str, Any]:
        """The JSON form that ``autotune search --json`` prints for a file with several workloads."""
        return {
            "study": self.name,
            "workloads": [
                {"workload": plain(workload), "held_out": held_out, **result.to_document()}
                for result, workload, held_out in zip(
                    self.results, self.matrix.workloads, self.matrix.held_out, strict=True
                )
            ],
            "matrix": matrix_document(self.matrix),
            "failures": dict(self.failures),
            "reason": self.reason,
        }


def matrix_document(matrix: Matrix) -> dict[str, Any]:
    """The matrix as JSON. ``configurations`` are the columns; ``status`` says why a cell has no value."""
    return {
        "metric": matrix.metric.name,
        "unit": matrix.metric.unit,
        "default": matrix.default,
        "configurations": [plain(one) for one in matrix.configurations],
        "found_by": [sorted(rows) for rows in matrix.found_by],
        "rows": [
            {
                "study": study.label,
                "workload": plain(workload),
                "held_out": held_out,
                "cells": [
                    {
                        "value": _number(cell.value),
                        "low": _number(cell.low),
                        "high": _number(cell.high),
                        "status": cell.status,
                    }
                    for cell in cells
                ],
            }
            for study, workload, held_out, cells in zip(
                matrix.studies, matrix.workloads, matrix.held_out, matrix.cells, strict=True
            )
        ],
    }


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None
