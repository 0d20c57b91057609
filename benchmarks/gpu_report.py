"""What the runs on a GPU came to, as Markdown. Pure: from the parts' documents to text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.gpu_duel import SECOND, rivals
from benchmarks.gpu_gemm import SAME_LIST, TRITON, entrants_of, named, ratio
from benchmarks.gpu_plan import Document
from benchmarks.gpu_search import seconds_text
from benchmarks.publishing import head

BUSY = 0.8
"""The part of a search in which the device is to be measuring."""
AGREE = 0.01
"""Two searches from different seeds are to end so near to each other."""
WIDEST = 4 * AGREE
"""Of an interval about a ratio, that it still tells anything of a claim which it does not decide."""
THIRD = 1 / 3
"""Of triton.autotune's time, what a search of the same list may take."""

SPOILT = "a spoilt context ends the worker, not the search"

LEGEND = """\
* In brackets: the interval at 95 %. A ratio above 1: what is named first is faster; both were read in turn.
* *holds*: `-` where the readings do not decide, or nothing was promised.
* *of the roofline*: the least time that the problem can take, by the bandwidth and the arithmetic that were
  measured on this device, over the time.
* *tuning s* leaves out what it takes to start processes and to load PyTorch, *with starting s* has it, and so
  has *best found at s*. *measuring*: the part of a search, from its first trial on, in which the device
  measured.
* *error*: the largest one of the default's answer, on the scale on which the kernel is checked.
* *caches*: what a call finds in them. *launched*: call by call, or many calls at once as a CUDA graph."""

LIBRARY, COMPILED = "torch", "torch-compile"


def report(parts: Sequence[Document], head: Sequence[str]) -> str:
    """The whole page. ``parts`` are :meth:`benchmarks.gpu_plan.Done.to_document`.

    What a part was ended before, or failed at, is missing in its result, and the page says the rest.
    """
    results = {part["part"]: part["result"] for part in parts if part["result"] is not None}
    gemms = {
        name.removeprefix("gemm "): r
        for name, r in results.items()
        if name.startswith("gemm ") and "rows" in r
    }
    tuned = {
        name.removeprefix("tune "): r
        for name, r in results.items()
        if name.startswith("tune ") and "trials" in r
    }
    lines = ["# Kernels on a GPU", "", *head, ""]
    faults = results.get("planted faults", {})
    if gemms or faults:
        lines += ["## What was to be shown", "", *claims(gemms, tuned), *planted_claims(faults), ""]
    for name, found in gemms.items():
        lines += [*gemm_section(name, found), ""]
    if tuned:
        lines += ["## Each kernel tuned", "", *tuned_table(tuned), ""]
    if "faults" in faults:
        lines += ["## Planted faults", "", *planted_table(faults["faults"]), ""]
    if "smoke check" in results:
        lines += ["## Does each kernel run", "", *smoke_table(results["smoke check"]["kernels"]), ""]
    lines += ["## How the time was spent", "", *time_table(parts), ""]
    return "\n".join([*lines, "## How to read it", "", LEGEND, ""])


# -- the claims --------------------------------------------------------------------------------


def claims(gemms: Mapping[str, Document], tuned: Mapping[str, Document]) -> list[str]:
    """Each thing that was to be shown, and whether it was."""
    lines = head("claim | where | found | holds")
    for name, found in gemms.items():
        entrants = entrants_of(found)
        own, peer = named(entrants, SAME_LIST), named(entrants, TRITON)
        same = ratio(entrants, own, peer)
        lines.append(
            _claim(
                "not slower than triton.autotune over the same list",
                name,
                "the same configuration" if own == peer and own else ratio_text(same),
                not_slower(same),
            )
        )
        lines.append(_third(name, found))
        best = ratio(entrants, _winner(found), named(entrants, LIBRARY))
        lines.append(_claim("the tuned product over cuBLAS", name, ratio_text(best), None))
        compiled = ratio(entrants, _winner(found), named(entrants, COMPILED))
        lines.append(_claim("the tuned product over torch.compile", name, ratio_text(compiled), None))
        if "again" in found:
            lines.append(_agreement(name, found))
    searches = {f"gemm {name}, whole space": r["whole"] for name, r in gemms.items() if "whole" in r} | dict(
        tuned
    )
    for name, found in searches.items():
        lines.append(_claim("the device is measuring", name, f"{found['busy']:.0%}", found["busy"] >= BUSY))
    return lines


def planted_claims(found: Document) -> list[str]:
    """Whether each fault was caught every time, and what an error cost that spoils the context."""
    lines = []
    if faults := found.get("faults"):
        caught, planted = (sum(one[key] for one in faults.values()) for key in ("caught", "planted"))
        problems = any(one["problems"] for one in faults.values())
        untried = found.get("untried", 0)
        holds = None if not planted else caught == planted and not problems
        holds = None if holds and untried else holds
        text = f"{caught} of {planted}" + (", and something else went wrong" if problems else "")
        possible = sum(bool(one["planted"] or one["problems"]) for one in faults.values())
        where = f"{possible} faults" + (f"; {untried} more were not tried" if untried else "")
        where += f"; {len(faults) - possible} not possible here" if possible < len(faults) else ""
        lines.append(_claim("a planted fault is caught every time", where, text, holds))
    sticky = found.get("sticky")
    if sticky and "problem" in sticky:
        lines.append(_claim(SPOILT, "cuda-gemm", _cell(sticky["problem"]), None))
    elif sticky:
        wrong, right = sticky["wrong"], sticky["right"]
        # One that was read and let go as slower was right as well.
        holds = bool(wrong and right) and "ok" not in wrong and set(right) <= {"ok", "pruned"}
        text = f"{', '.join(wrong) or 'none'}; the others: {', '.join(right) or 'none'}"
        lines.append(_claim(SPOILT, "cuda-gemm", text, holds))
    return lines


def _third(name: str, found: Document) -> str:
    """Whether the search of the same list took a third of triton.autotune's time at most."""
    peer, same = found.get("triton", {}), found.get("list", {})
    if "seconds" in peer and "tuning" in same:
        text = f"{same['tuning']:.1f} s of {peer['seconds']:.1f} s"
        return _claim("in a third of its time", name, text, same["tuning"] <= THIRD * peer["seconds"])
    text = peer.get("problem") or same.get("problem") or "-"
    return _claim("in a third of its time", name, _cell(text), None)


def _agreement(name: str, found: Document) -> str:
    """Whether two searches from different seeds ended near each other: by the duel of the best of each."""
    pair, read = rivals(entrants_of(found)), found.get("duel") or entrants_of(found)
    both = None if pair is None else ratio(read, *pair)
    text = ratio_text(both)
    if "duel" in found and pair is not None:
        text += f", {len(read[pair[0]]['rounds'])} rounds"
    return _claim("two searches end within 1 % of each other", name, text, agree(both))


def not_slower(found: tuple[float, float, float] | None) -> bool | None:
    """Whether a ratio of speeds is not below 1; ``None`` where its interval is too wide to tell."""
    if found is None:
        return None
    _, low, high = found
    if high < 1:
        return False
    return None if low < 1 and high - low > WIDEST else True


def agree(found: tuple[float, float, float] | None) -> bool | None:
    """Whether a ratio is 1 within 1 %; ``None`` where its interval is too wide to tell."""
    if found is None:
        return None
    estimate, low, high = found
    if low > 1 + AGREE or high < 1 - AGREE:
        return False
    if high - low > WIDEST:
        return None
    return abs(estimate - 1) <= AGREE


def _claim(claim: str, where: str, found: str, holds: bool | None) -> str:
    verdict = "-" if holds is None else "yes" if holds else "**no**"
    return f"| {claim} | {where} | {found} | {verdict} |"


def ratio_text(found: tuple[float, float, float] | None) -> str:
    return "-" if found is None else f"{found[0]:.3f} ({found[1]:.3f} to {found[2]:.3f})"


def _winner(found: Document) -> str | None:
    winner: str | None = found.get("race", {}).get("winner")
    return winner if winner in entrants_of(found) else None


def _cell(text: str) -> str:
    """What was said elsewhere, in a cell of a table."""
    return " ".join(text.replace("|", "/").split())[:300]


# -- the product -------------------------------------------------------------------------------


def gemm_section(name: str, found: Document) -> list[str]:
    work = found["workload"]
    entrants, peer = entrants_of(found), found.get("triton", {})
    operations = 2.0 * work["m"] * work["n"] * work["k"]
    floor = (found.get("whole", {}).get("roofline") or {}).get("floor")
    over_peer, over_library = named(entrants, TRITON), named(entrants, LIBRARY)
    lines = [
        f"## triton-gemm, {name}: {work['m']} x {work['n']} x {work['k']}, {work['dtype']}",
        "",
        *head("entrant | time | TFLOP/s | of the roofline | over triton.autotune | over cuBLAS"),
    ]
    for label, entrant in entrants.items():
        title = " = ".join([label, *entrant["also"]]) + (" **(winner)**" if label == _winner(found) else "")
        if entrant["time"] is None:
            said = _cell(f"{entrant['status']}: {entrant['message']}")
            lines.append(f"| {title} | {said} | | | | |")
            continue
        seconds = entrant["time"]["value"]
        share = f"{floor / seconds:.0%}" if floor else "-"
        lines.append(
            f"| {title} | {_interval(entrant['time'])} | {operations / seconds / 1e12:.1f} | {share}"
            f" | {ratio_text(ratio(entrants, label, over_peer))}"
            f" | {ratio_text(ratio(entrants, label, over_library))} |"
        )
    if remark := found.get("race", {}).get("remark"):
        lines += ["", f"Of the verdict: {remark}."]
    lines += ["", *search_table(found, peer)]
    own = {label: found[key] for label, key in _SEARCHES if key in found}
    lines += ["", *(f"* {label}: {text}" for label, one in own.items() for text in _troubles(one))]
    return [*lines, "", f"The winner's configuration: `{_configuration(found)}`."]


_SEARCHES = ((SAME_LIST, "list"), ("autotune, whole space", "whole"), (SECOND, "again"))


def _troubles(one: Document) -> list[str]:
    """What went wrong in a search, in a line each."""
    lines = [_cell(text) for text in one.get("failures", ())]
    if one.get("throttled"):
        lines.append(f"{one['throttled']} trials had throttled readings, which were discarded")
    return lines


def search_table(found: Document, peer: Document) -> list[str]:
    """What each search took."""
    lines = head("search | configurations | tried | tuning s | with starting s | measuring | best found at s")
    if "seconds" in peer:
        both = peer["seconds"] + peer["started"]
        failed = f" ({peer['failed']} failed)" if peer.get("failed") else ""
        lines.append(
            f"| {TRITON} | {found['rows']} | {found['rows']}{failed} | {peer['seconds']:.1f} | {both:.1f}"
            " | - | - |"
        )
    else:
        lines.append(f"| {TRITON} | {found['rows']} | {_cell(peer.get('problem', ''))} | | | | |")
    for label, key in _SEARCHES:
        if (one := found.get(key)) is not None:
            size = found["rows"] if key == "list" else "all"
            if "trials" not in one:
                lines.append(f"| {label} | {size} | {_cell(one['problem'])} | | | | |")
                continue
            tuning = f"{one['tuning']:.1f}" if "tuning" in one else "-"
            at = f"{one['best_at']:.1f}" if one["best_at"] else "-"
            lines.append(
                f"| {label} | {size} | {one['trials']}: {_statuses(one)} | {tuning} | {one['wall']:.1f}"
                f" | {one['busy']:.0%} | {at} |"
            )
    return lines


def _configuration(found: Document) -> str:
    if (winner := _winner(found)) is None:
        return "none"
    entrant = entrants_of(found)[winner]
    return ", ".join(f"{knob} {value}" for knob, value in entrant["configuration"].items())


# -- the other kernels -------------------------------------------------------------------------


def tuned_table(tuned: Mapping[str, Document]) -> list[str]:
    lines = head(
        "kernel | workload | best | of the roofline | times the default's speed | times the vendor's speed"
        " | tried | measuring"
    )
    for name, one in tuned.items():
        roof = one["roofline"]
        share = f"{roof['share']:.0%} ({roof['bound']})" if roof else "-"
        vendors = "; ".join(f"{b['against']} {_ratio_of(b)}" for b in one["baselines"]) or "-"
        best = _interval(one["time"]) if one["time"] else one["remark"] or "-"
        work = ", ".join(f"{k} {v}" for k, v in one["workload"].items() if k not in ("interpret", "device"))
        lines.append(
            f"| {name} | {work} | {best} | {share} | {_ratio_of(one['speedup'])} | {vendors}"
            f" | {one['trials']}: {_statuses(one)} | {one['busy']:.0%} |"
        )
    remarks = [f"* {name}: {one['remark']}" for name, one in tuned.items() if one["remark"]]
    return [
        *lines,
        "",
        *remarks,
        *(f"* {name}: {text}" for name, one in tuned.items() for text in _troubles(one)),
    ]


def smoke_table(kernels: Mapping[str, Document]) -> list[str]:
    lines = head("kernel | status | time of the default | error | all of it took s | caches | launched")
    for name, one in kernels.items():
        timing = one.get("timing") or {}
        caches = timing.get("caches", "-")
        if "flushed_bytes" in timing:
            caches += f": {timing['flushed_bytes'] / 2**20:.0f} MiB written before each batch"
        launched = timing.get("launched", "-") + (
            f" ({_cell(timing['no_graph'])})" if "no_graph" in timing else ""
        )
        status = _cell(f"{one['status']}: {one['message']}" if one["message"] else one["status"])
        error = f"{one['error']:.2g}" if one.get("error") is not None else "-"
        seconds = seconds_text(one.get("time"))
        lines.append(
            f"| {name} | {status} | {seconds} | {error} | {one['took']:.1f} | {caches} | {launched} |"
        )
    return lines


def planted_table(faults: Mapping[str, Document]) -> list[str]:
    lines = head("fault | caught | what was said")
    for name, one in faults.items():
        said = "; ".join([*one["said"][:1], *(f"**{problem}**" for problem in one["problems"])])
        lines.append(f"| {name} | {one['caught']} of {one['planted']} | {_cell(said)} |")
    return lines


def time_table(parts: Sequence[Document]) -> list[str]:
    lines = head("part | given s | took s | problem")
    for part in parts:
        problem = _cell(str(part["problem"]))
        lines.append(f"| {part['part']} | {part['given']:.0f} | {part['took']:.0f} | {problem} |")
    return lines


def _statuses(one: Document) -> str:
    return ", ".join(f"{count} {status}" for status, count in one["statuses"].items())


def _ratio_of(one: Mapping[str, Any] | None) -> str:
    return ratio_text((one["estimate"], one["low"], one["high"])) if one else "-"


def _interval(time: Mapping[str, float]) -> str:
    return f"{seconds_text(time['value'])} ({seconds_text(time['low'])} to {seconds_text(time['high'])})"
