"""Environment variables: which are kept, and that no secret gets through."""

from __future__ import annotations

import string

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autotune.provenance.variables import MASK, mask, mask_text, relevant

secrets = st.text(string.ascii_letters + string.digits + "!#$%^*()_+-.~/@:?", min_size=8, max_size=40)
names = st.text(string.ascii_uppercase + "_", max_size=8)
words = st.sampled_from(["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"])


def test_only_what_can_change_a_measurement_is_kept() -> None:
    variables = {
        "OMP_NUM_THREADS": "4",
        "HOME": "/home/me",
        "CC": "clang",
        "PATH": "/bin",
        "PYTHONHASHSEED": "0",
        "KMP_INIT_AT_FORK": "FALSE",  # set by scikit-learn as soon as something imports it
    }
    assert relevant(variables) == {"CC": "clang", "OMP_NUM_THREADS": "4", "PYTHONHASHSEED": "0"}


@pytest.mark.parametrize(
    "name",
    [
        *("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "GOMAXPROCS", "JAVA_TOOL_OPTIONS"),
        *("NODE_OPTIONS", "UV_THREADPOOL_SIZE", "XLA_FLAGS"),
    ],
)
def test_what_sets_the_threads_of_other_libraries_and_languages_is_kept(name: str) -> None:
    assert relevant({name: "2"}) == {name: "2"}


@pytest.mark.parametrize(
    "name", ["CUBLASLT_WORKSPACE_SIZE", "MIOPEN_FIND_MODE", "ROCBLAS_LAYER", "TCMALLOC_SAMPLE_PARAMETER"]
)
def test_what_sets_libraries_of_gpus_and_allocators_is_kept(name: str) -> None:
    assert relevant({name: "2"}) == {name: "2"}


@given(names, words, names, secrets)
def test_a_name_that_says_secret_hides_the_value(before: str, word: str, after: str, secret: str) -> None:
    for name in (before + word + after, (before + word + after).lower()):
        assert mask(f"AUTOTUNE_{name}", secret) == MASK


@given(st.sampled_from(["postgresql", "https", "postgresql+psycopg", "s3"]), secrets, secrets)
def test_credentials_in_a_url_are_hidden(scheme: str, user: str, password: str) -> None:
    assume(
        password not in f"{scheme}://{MASK}@db.example/tune"
        and user not in f"{scheme}://{MASK}@db.example/tune"
    )
    masked = mask("AUTOTUNE_STORE", f"{scheme}://{user}:{password}@db.example/tune")
    # A password such as 'PWD:' looks like an assignment of what follows, which is then hidden as well.
    assert masked in (f"{scheme}://{MASK}@db.example/tune", f"{scheme}://{MASK}")


def test_a_password_that_looks_like_an_assignment_does_not_leak() -> None:
    masked = mask("AUTOTUNE_STORE", "postgresql://user0000:PWD0000:@db.example/tune")
    assert "user0000" not in masked and "PWD0000" not in masked


@given(words, st.text(string.ascii_letters + string.digits + "!#$%^*()_+-.~/@", min_size=8, max_size=40))
def test_assigned_secrets_are_hidden(word: str, secret: str) -> None:
    for text in (
        f"-O3 -DAPI_{word}={secret} -g",
        f"host=db {word.lower()}={secret}",
        f"https://x/?a=1&{word}={secret}",
    ):
        masked = mask("CFLAGS", text)
        assert secret not in masked, masked
        assert MASK in masked


@pytest.mark.parametrize(
    "value",
    [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "AKIAIOSFODNN7EXAMPLE",
        "Bearer abc.def",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc",
        "sk-abcdefghijklmnopqrst",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n",
    ],
)
def test_tokens_of_services_are_hidden_whatever_the_name(value: str) -> None:
    masked = mask("TORCH_HUB", f"before {value}")
    assert masked.startswith("before ") and MASK in masked
    assert value[-6:].strip() not in masked


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LD_LIBRARY_PATH", "/opt/cuda/lib64:/usr/lib"),
        ("CFLAGS", "-O3 -march=native -DNDEBUG -I/usr/include"),
        ("AUTOTUNE_STORE", "sqlite:///results/autotune.db"),
        ("CUDA_VISIBLE_DEVICES", "0,1"),
        ("OMP_PLACES", "{0:4},{4:4}"),
        ("NCCL_SOCKET_IFNAME", "=eth0"),
        ("AUTOTUNE_PASSWORD", ""),
    ],
)
def test_harmless_values_are_kept(name: str, value: str) -> None:
    assert mask(name, value) == value


@given(st.text())
def test_masking_twice_changes_nothing_more(text: str) -> None:
    assert mask_text(mask_text(text)) == mask_text(text)
