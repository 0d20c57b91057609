"""``autotune doctor``: what this machine can do, its noise floor, and what is missing for what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from autotune.cli.options import json_option, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command("doctor")
@click.option("--seconds", type=click.FloatRange(0.1, 60), default=1.0, help="How long to measure the noise.")
@json_option
def command(seconds: float, as_json: bool) -> int:
    """Say what works here and what is missing for what. Everything is tried, nothing is assumed."""
    from dataclasses import asdict

    from autotune.provenance.device import device_facts
    from autotune.provenance.environment import capture
    from autotune.provenance.noise import noise_floor
    from autotune.provenance.probe import probe

    environment = capture(None)
    document: dict[str, Any] = {
        "machine_key": environment.machine_key,
        "device": dict(device_facts()),
        "noise": asdict(noise_floor(seconds)),
        "capabilities": [asdict(capability) for capability in probe()],
    }
    if as_json:
        print_json(document)
    else:
        click.echo(say(document))
    return 0


def say(document: Mapping[str, Any]) -> str:
    device, noise = document["device"], document["noise"]
    lines = [f"device      {device.get('name', 'unknown')}"]
    facts = ", ".join(f"{k} {v}" for k, v in device.items() if k not in ("name", "kind", "names"))
    lines += [f"            {facts}"]
    lines += [
        f"noise       {noise['spread']:.2%} spread, {noise['drift']:+.2%} drift: {noise['adjective']}",
        "",
    ]
    for capability in document["capabilities"]:
        mark = "ok     " if capability["available"] else "missing"
        lines.append(f"{mark}  {capability['name']:14} {capability['detail']}")
        if not capability["available"]:
            lines.append(f"{'':24} for {capability['needed_for']}; {capability['remedy']}")
    return "\n".join(lines)
