"""Whether a server holds to its settings, answers what is true, and keeps what it has acknowledged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from files_of_kernel import cached
from postgres_load import ACCOUNTS, Load, last_number, numbers_after, run_until_killed
from postgres_programs import ProgramFailed
from postgres_sales import DAYS, REGIONS, WINDOW, Sales
from postgres_server import DURABLE, Server, ServerRefused
from postgres_settings import is_as_told

from autotune.measure.objective import WrongAnswer

ASKED = 2
"""So many analyses, and sales of customers and regions, are asked for and compared."""
KILLED = 100
"""Transactions of each client while the server is killed, and it is before a quarter of them."""
MOST_SEED = 2**31
_TRIES = 5
"""Of a transaction that is to be on the disk: the server itself may write to its log just then."""

_SUMS = {
    "accounts": "SELECT coalesce(sum(abalance), 0) FROM pgbench_accounts",
    "tellers": "SELECT sum(tbalance) FROM pgbench_tellers",
    "branches": "SELECT sum(bbalance) FROM pgbench_branches",
    "history": "SELECT coalesce(sum(delta), 0) FROM pgbench_history",
}


def check_settings(server: Server, told: Mapping[str, str]) -> None:
    """It is as durable as it has to be, and has the settings that it was told."""
    found = dict(server.ask("SELECT name, setting FROM pg_settings"))
    for name in DURABLE:
        if found[name] != "on":
            raise WrongAnswer(f"what is acknowledged may be lost: {name} is {found[name]}")
    for name, value in told.items():
        if not is_as_told(value, found[name]):
            raise WrongAnswer(f"{name} is {found[name]}, of {value} that was asked for")


def check_answers(server: Server, sales: Sales, rng: np.random.Generator) -> None:
    """Analyses and sales of customers are as they are known to be."""
    for _ in range(ASKED):
        day, customer, region = map(int, rng.integers((DAYS - WINDOW + 1, sales.customers, REGIONS)))
        query = Sales.of_a_customer.replace(":customer", str(customer))
        if server.ask(query) != sales.customer_answer(customer):
            raise WrongAnswer(f"the sales of customer {customer} are answered with others than there are")
        query = Sales.of_a_region.replace(":region", str(region))
        if server.ask(query) != sales.region_answer(region):
            raise WrongAnswer(f"the sales of region {region} are answered with others than there are")
        analysis = [query.replace(":day", str(day)) for query in Sales.analysis]
        if server.ask(*analysis) != sales.analysis_answer(day):
            raise WrongAnswer(f"an analysis of day {day} is answered with something else than is true")


def check_sums(server: Server, scale: int, history: int, *, accounts: bool) -> None:
    """The sums of TPC-B agree, and there are so many rows of history; with the accounts, or without."""
    asked = {name: query for name, query in _SUMS.items() if accounts or name != "accounts"}
    counts = "SELECT count(*) FROM pgbench_history"
    *sums, rows = (int(row[0]) for row in server.ask(*asked.values(), counts))
    if len(set(sums)) > 1:
        said = ", ".join(f"{name} {value}" for name, value in zip(asked, sums, strict=True))
        raise WrongAnswer(f"the sums of the balances and of what was booked differ: {said}")
    if rows != history:
        raise WrongAnswer(f"the history has {rows} rows, where {history} transactions were acknowledged")
    if accounts:
        found = server.number("SELECT count(*) FROM pgbench_accounts")
        if found != scale * ACCOUNTS:
            raise WrongAnswer(f"there are {found} accounts, of {scale * ACCOUNTS}")


def check_on_disk(server: Server) -> None:
    """The log of a transaction is on the disk when it is acknowledged, as far as the kernel says."""
    change = "UPDATE pgbench_branches SET filler = CASE WHEN filler = 'a' THEN 'b' ELSE 'a' END WHERE bid = 1"
    for _ in range(_TRIES):
        (name,) = server.ask(change, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")[-1]
        held = cached(server.data / "pg_wal" / name)
        if held is None or not held.unwritten:
            return
    raise WrongAnswer("a transaction was acknowledged while its log was only in memory")


def check_killed(server: Server, load: Load, told: Mapping[str, str], rng: np.random.Generator) -> None:
    """All processes of the server are killed while clients update. What they know of is there again."""
    begin = last_number(server)
    before = server.number("SELECT count(*) FROM pgbench_history")
    updates = replace(load, each=KILLED, reads=0, reports=0, analyses=0, begin=begin)
    wanted = before + int(rng.integers(1, updates.count // 4 + 1))
    acknowledged = run_until_killed(server, updates, int(rng.integers(MOST_SEED)), wanted)
    try:
        server.start(told)
        there = numbers_after(server, begin, load.clients)
        _compare(there, acknowledged, begin)
        check_sums(server, load.scale, before + sum(map(len, there)), accounts=True)
    except (ServerRefused, ProgramFailed) as error:
        raise WrongAnswer(f"after SIGKILL the server does not recover: {error}") from None


def _compare(there: Sequence[Sequence[int]], acknowledged: Sequence[int], begin: int) -> None:
    """Of each client its transactions after ``begin``, up to the last that it knows of or the one after."""
    for client, (numbers, known) in enumerate(zip(there, acknowledged, strict=True)):
        whole = list(numbers) == [begin + 1 + number for number in range(len(numbers))]
        if not whole or not 0 <= len(numbers) - known <= 1:
            raise WrongAnswer(
                f"after SIGKILL {len(numbers)} transactions of client {client} are there, of {known} that"
                " were acknowledged and perhaps the one after them"
            )
