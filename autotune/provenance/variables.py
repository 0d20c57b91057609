"""The environment variables that can change a measurement, with secrets masked.

Masking errs on the side of hiding: a value is worth little beside a password in a shared store.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

PREFIXES = (
    *(
        "OMP_",
        "GOMP_",
        "KMP_",
        "OPENBLAS_",
        "GOTO_",
        "BLIS_",
        "MKL_",
        "VECLIB_",
        "NUMEXPR_",
        "ONEDNN_",
        "DNNL_",
    ),
    *("CUDA_", "CUDNN_", "CUBLAS_", "CUBLASLT_", "NCCL_", "NVIDIA_", "NVCC_", "NVRTC_"),
    *("HIP_", "HIPBLASLT_", "HSA_", "MIOPEN_", "ROCBLAS_", "ROCR_", "ROCM_"),
    *("GLOO_", "UCX_", "OMPI_", "LD_", "PYTHON", "TORCH", "PYTORCH_", "TRITON", "XLA_", "JAX_", "ATEN_"),
    *("TF_CPP_", "TF_CUDNN_", "TF_ENABLE_", "TF_GPU_", "TF_NUM_", "TF_XLA_"),
    *("MALLOC_", "MIMALLOC_", "TCMALLOC_"),
    *("NUMBA_", "POLARS_", "RAYON_", "TBB_", "JULIA_"),
)
NAMES = frozenset(
    {"CC", "CXX", "FC", "LD", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS", "FFLAGS", "MAKEFLAGS"}
    | {"CPATH", "C_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX"}
    | {"GLIBC_TUNABLES", "RUSTFLAGS", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "KERAS_BACKEND"}
    | {"JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "NODE_OPTIONS", "UV_THREADPOOL_SIZE"}
)

_SET_ON_IMPORT = frozenset({"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK"})
"""What scikit-learn sets when it is loaded. They only say how OpenMP starts. Two captures of one process must
not differ by what it has loaded in between."""

MASK = "***"

_SECRET = r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|BEARER|PRIVATE"
_SECRET_NAME = re.compile(_SECRET, re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://).*@", re.DOTALL)
"""From the first ``://`` to the last ``@``: a password may hold either, and so may a list of URLs."""
_ASSIGNED = re.compile(
    rf"(?P<name>[\w.-]*(?:{_SECRET}|\bPWD|\bSIG(?:NATURE)?\b)[\w.-]*)(?P<mark>\s*[=:]\s*)"
    r"(?P<value>'[^']*'|\"[^\"]*\"|[^\s&;]+)",
    re.IGNORECASE,
)
"""``token=...`` inside a value: a query string, a data source name, a ``-D`` flag of a compiler."""
_TOKENS = re.compile(
    r"\b(?:gh[pousr]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|hf_\w{16,}|sk-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|(?:AKIA|ASIA)[A-Z0-9]{12,}|AIza[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
    r"|\bBearer\s+\S+|-----BEGIN [^-]*-----.*",
    re.DOTALL,
)
"""What the tokens of well-known services look like, whatever the variable is called."""


def relevant(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables that can change a measurement, sorted by name, secrets masked.

    Those of autotune itself, such as the place of the store, change none.
    """
    chosen = {name for name in variables if name in NAMES or name.startswith(PREFIXES)} - _SET_ON_IMPORT
    return {name: mask(name, variables[name]) for name in sorted(chosen)}


def mask(name: str, value: str) -> str:
    """``value`` with everything hidden that looks like a secret, or :data:`MASK` for a secret's name."""
    if _SECRET_NAME.search(name) and value:
        return MASK
    return mask_text(value)


def mask_text(value: str) -> str:
    """``value`` without credentials in URLs, assigned secrets and the tokens of well-known services."""
    # Both are looked for in the text as it is: either, done first, could destroy what the other needs.
    spans = [found.span("value") for found in _ASSIGNED.finditer(value)]
    spans += [(found.start(), found.end() - 1) for found in _USER_INFO.finditer(value)]
    return _TOKENS.sub(MASK, _hide(value, spans))


def _hide(value: str, spans: Iterable[tuple[int, int]]) -> str:
    """``value`` with each stretch replaced by :data:`MASK`; stretches that touch are one."""
    parts, shown = [], 0
    hidden: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if hidden and start <= hidden[-1][1]:
            hidden[-1] = (hidden[-1][0], max(end, hidden[-1][1]))
        else:
            hidden.append((start, end))
    for start, end in hidden:
        parts += [value[shown:start], MASK]
        shown = end
    return "".join([*parts, value[shown:]])
