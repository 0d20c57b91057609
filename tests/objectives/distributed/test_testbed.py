"""Links come out as asked, can be cut, and nothing of them is left."""

from __future__ import annotations

import pickle
import re
import socket
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from autotune.measure.groups.device import Device, Link
from autotune.measure.groups.failures import RankSilent
from autotune.measure.groups.group import ProcessGroup
from autotune.measure.groups.network import Loopback
from autotune.measure.loading.sources import source_files
from autotune.measure.objective import Lost
from autotune.space.reading.reader import read_spec
from tests.measure.groups import functions as functions
from tests.objectives.distributed import work
from tests.objectives.ready import SPACES
from tests.objectives.training import importable

importable("distributed")

import testbed  # noqa: E402
from testbed.network import segments_of  # noqa: E402
from testbed.trying import try_link  # noqa: E402
from testbed.tunnel import TunPort  # noqa: E402
from testbed.wire import SOURCE  # noqa: E402

needs_links = pytest.mark.skipif(bool(testbed.unable()), reason=f"no links here: {testbed.unable()}")


def group_of(*links: Link, stall: float = 5.0) -> ProcessGroup:
    devices = [Device(link=link) for link in links]
    return ProcessGroup(devices, testbed.network_for(devices), stall)


def check_link(links: tuple[Link, Link], bandwidth: float, round_trip: float) -> Any:
    """See that the links come out as asked, and return the traffic.

    A fault would show in each of four tries. In one of them a host that takes the cores away carries less, or
    more where what was kept waiting comes at once.
    """
    wanted = bandwidth * 1448 / 1500  # 52 of 1,500 bytes are headers
    for _ in range(4):
        with group_of(*links, stall=20.0) as group:
            tried = try_link(group, seconds=1.0)
            traffic: Any = group.network.traffic()  # type: ignore[attr-defined]
        if 0.6 < tried.bandwidth / wanted < 1.1 and 0.9 < tried.round_trip / round_trip < 1.6:
            return traffic
    raise AssertionError(f"{tried}, not {wanted} bits/s and {round_trip} s")


def test_a_link_is_tried_beside_whoever_else_listens() -> None:
    """Where ranks have no namespaces of their own, a second trial had found its port taken."""
    with ExitStack() as held:
        with suppress(OSError):  # then another has it
            held.enter_context(socket.create_server(("127.0.0.1", 29400)))
        group = held.enter_context(ProcessGroup([Device(), Device()], Loopback(), 5.0))
        tried = [try_link(group, seconds=0.1).bandwidth for _ in range(4)]
    assert any(bandwidth > 0 for bandwidth in tried), (
        "a machine that stands still for so long carries nothing"
    )


@pytest.mark.long
@needs_links
def test_bandwidth_and_latency_come_out_as_asked() -> None:
    """Far below what the machine can copy."""
    traffic = check_link((Link(5e6, 0.02), Link(5e6, 0.02)), 5e6, 0.04)
    assert traffic.lost == 0 and traffic.bytes[0][1] > 2e5 > traffic.bytes[1][0]


@pytest.mark.long
@needs_links
def test_unequal_links_share_the_smaller_bandwidth_and_the_mean_latency() -> None:
    check_link((Link(1e9, 0.0), Link(5e6, 0.08)), 5e6, 0.08)


@needs_links
def test_ranks_meet_in_namespaces_of_their_own() -> None:
    with group_of(Link(1e9, 1e-4), Link(1e9, 1e-4), Link(1e9, 1e-4)) as group:
        assert group.run(functions.ring, 29310).results == (3, 3, 3)
        namespaces = set(group.run(work.namespace).results)
        wire = set(group.network.processes)
        assert wire < group.processes and group.facts["network"] == "shaped"
    assert len(namespaces) == 3 and work.namespace(None) not in namespaces
    assert not any(Path(f"/proc/{pid}").exists() for pid in wire)


@pytest.mark.long
@needs_links
def test_a_link_that_is_cut_is_a_timeout_and_the_next_call_has_a_new_one() -> None:
    link = Link(1e9, 1e-4)
    with group_of(link, link, stall=3.0) as group:
        group.run(work.exchange, 5)
        group.network.cut(1)  # type: ignore[attr-defined]
        with pytest.raises(RankSilent, match=r"gave no sign for .* in 'communicate'"):
            group.run(work.exchange, 5)
        assert group.run(work.exchange, 5).results == (5, 5)


@needs_links
def test_a_switch_that_dies_is_no_fault_of_the_configuration() -> None:
    link = Link(1e9, 1e-4)
    with group_of(link, link, stall=5.0) as group:
        group.run(work.exchange, 5)
        (wire,) = group.network.processes
        with pytest.raises(Lost, match="its switch ended"):
            group.run(work.exchange_until_killed, wire)
        assert group.run(work.exchange, 5).results == (5, 5)


@pytest.mark.parametrize(
    "name", ["async-sgd", "comm-allreduce", "comm-ddp", "distributed-matmul", "placement-graph"]
)
def test_the_switch_is_part_of_what_is_frozen(name: str) -> None:
    """Its C was not: results through another switch counted."""
    assert SOURCE in source_files(read_spec(SPACES / f"{name}.yaml").objective)


def test_more_links_than_a_switch_has_room_for_are_refused() -> None:
    """It had ended with a code, in every trial."""
    most = int(re.search(r"MOST = (\d+)", SOURCE.read_text())[1])  # type: ignore[index]
    linked = [Device(link=Link(1e9, 0))]
    assert len(testbed.links_of(linked * most)) == most
    with pytest.raises(ValueError, match=f"room for {most} devices with links, and not for {most + 1}"):
        testbed.links_of(linked * (most + 1))


def test_without_links_or_without_rights_it_is_the_loopback_interface(monkeypatch: Any) -> None:
    assert testbed.network_for([Device(), Device()]) == Loopback()
    with pytest.raises(ValueError, match="some devices have a link"):
        testbed.network_for([Device(), Device(link=Link(1e9, 0))])
    monkeypatch.setattr("testbed.network.unable", lambda: "no rights")
    network = testbed.network_for([Device(link=Link(1e9, 0))])
    assert network.facts == {"network": "loopback", "not_shaped": "no rights"}


def test_what_is_left_together_is_short_on_its_link() -> None:
    assert [segments_of(Link(rate, 0)) for rate in (1e8, 1e9, 1e11)] == [1, 8, 44]
    assert pickle.loads(pickle.dumps(TunPort(1, 8))) == TunPort(1, 8)


@pytest.mark.parametrize("bad", [(0.0, 0.1), (-1.0, 0.1), (1e9, -0.1), (float("nan"), 0.0)])
def test_a_link_that_cannot_be_is_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="a link needs a bandwidth above 0"):
        Link(*bad)
