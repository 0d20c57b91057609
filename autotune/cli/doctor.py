"""``autotune doctor``: what this machine can do, its noise floor, what is missing for what, and GPU work; or
whether a store is sound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autotune.cli.codes import DONE, FAILED
from autotune.cli.options import echo, json_option, print_json
from autotune.cli.silence import said_if_long

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST = 20
"""The most findings that are listed."""


@click.command("doctor")
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 60),
    default=1.0,
    show_default=True,
    help="How long to measure the noise.",
)
@click.option("--store", metavar="URL", help="Examine this store instead of the machine.")
@json_option
def command(seconds: float, store: str | None, as_json: bool) -> int:
    """Say what works here and what is missing for what. Everything is tried, nothing is assumed.

    With --store, say whether that store is sound: pages, references, values, readings, and each file by its
    hash.
    """
    if store is not None:
        with said_if_long("reading all of the store: Ctrl-C ends it", quiet=as_json):
            found = examine(store)
        if as_json:
            print_json(found)
        else:
            echo(say_store(found))
        return FAILED if found["findings"] else DONE
    with said_if_long("trying out what works here: Ctrl-C ends it", quiet=as_json):
        document = examine_machine(seconds)
    if as_json:
        print_json(document)
    else:
        echo(say(document))
    return DONE


def examine(store: str) -> dict[str, Any]:
    """How many studies and trials a store has, and what is wrong with it, as JSON."""
    from autotune.store.store import Store

    with Store.open(store, readonly=True) as opened:
        findings = opened.integrity()
        studies = [] if findings else opened.studies()
        trials = sum(sum(study.counts.values()) for study in studies)
        return {"store": opened.url, "studies": len(studies), "trials": trials, "findings": findings}


def say_store(found: Mapping[str, Any]) -> str:
    from autotune.report.numbers import say_count
    from autotune.store.databases.failures import BY_HAND, DAMAGED

    findings, url = found["findings"], found["store"]
    if not findings:
        studies, trials = say_count(found["studies"], "study", "studies"), say_count(found["trials"], "trial")
        return f"{url} is sound: {studies}, {trials}"
    remedy = DAMAGED.then if url.startswith("sqlite") else "Restore it from an earlier copy."
    more = [f"  and {len(findings) - MOST:,} more; --json has all"] if len(findings) > MOST else []
    return "\n".join([f"{url} is damaged:", *(f"  {one}" for one in findings[:MOST]), *more, BY_HAND, remedy])


def examine_machine(seconds: float) -> dict[str, Any]:
    from dataclasses import asdict

    from autotune.measure.gpu.prospects import prospects
    from autotune.measure.groups.prospects import group_prospects
    from autotune.provenance.device import device_facts
    from autotune.provenance.environment import capture
    from autotune.provenance.host.noise import noise_floor
    from autotune.provenance.probe import probe

    environment = capture(None)
    return {
        "machine_key": environment.machine_key,
        "device": dict(device_facts()),
        "noise": asdict(noise_floor(seconds)),
        "capabilities": [asdict(capability) for capability in probe()],
        "distributed": [asdict(capability) for capability in group_prospects()],
        "gpu": [asdict(capability) for capability in prospects()],
    }


def say(document: Mapping[str, Any]) -> str:
    device, noise = document["device"], document["noise"]
    lines = [f"device      {device.get('name', 'unknown')}"]
    facts = ", ".join(f"{k} {v}" for k, v in device.items() if k not in ("name", "kind", "names"))
    lines += [f"            {facts}"]
    lines += [
        f"noise       {noise['spread']:.2%} spread, {noise['drift']:+.2%} drift: {noise['adjective']}",
        "",
    ]
    lines += [line for capability in document["capabilities"] for line in _lines(capability)]
    lines += ["", f"Processes   {processes(document['distributed'])}", ""]
    lines += [line for capability in document["distributed"] for line in _lines(capability)]
    lines += ["", f"GPU work    {prospect(document['gpu'])}", ""]
    lines += [line for capability in document["gpu"] for line in _lines(capability)]
    return "\n".join(lines)


def _lines(capability: Mapping[str, Any]) -> list[str]:
    mark = "ok     " if capability["available"] else "missing"
    lines = [f"{mark}  {capability['name']:18} {capability['detail']}"]
    if not capability["available"]:
        lines.append(f"{'':28} for {capability['needed_for']}; {capability['remedy']}")
    return lines


def processes(found: Sequence[Mapping[str, Any]]) -> str:
    """Which links and devices objectives of several processes can have here, in a sentence."""
    works = {capability["name"] for capability in found if capability["available"]}
    links = "with links as asked" if "links" in works else "over the loopback interface only"
    return f"objectives of several processes run {links}" + (
        ", on devices of unequal speed" if "processor quota" in works else ""
    )


def prospect(found: Sequence[Mapping[str, Any]]) -> str:
    """What GPU work can be done here, in a sentence."""
    from autotune.measure.gpu import prospects as gpu

    works = {capability["name"] for capability in found if capability["available"]}
    if not works.issuperset(gpu.REQUIRED):
        possible = {
            "Triton kernels can be checked in the interpreter": gpu.INTERPRETER,
            "CUDA kernels can be checked in the emulator": gpu.EMULATOR,
            "Triton kernels can be compiled": gpu.TRITON,
            "CUDA kernels can be compiled": gpu.COMPILER,
        }
        left = [text for text, name in possible.items() if name in works]
        return f"nothing can be measured on a GPU here; {', '.join(left) or 'and nothing tried without one'}"
    kinds = {"in Triton": gpu.TRITON, "in CUDA C": gpu.COMPILER}
    able = [text for text, name in kinds.items() if name in works]
    return f"kernels can be tuned here: {' and '.join(able) or 'none before a compiler is installed'}"
