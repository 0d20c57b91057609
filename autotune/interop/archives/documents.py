"""What the documents in an archive may say: the shapes of those parts that others read. Pure.

autotune writes these documents, and reads them as it has written them. In an archive they may be anybody's.
Null is allowed only where autotune writes it: elsewhere readers count on a value where there is the part.
"""

from __future__ import annotations

from autotune.interop.archives.kinds import (
    any_list,
    any_object,
    at_least,
    flag,
    list_of,
    object_of,
    one_or_each,
    or_null,
    parts,
    real,
    text,
    whole,
)

SEARCH = parts(strategy=text, seed=whole, options=any_object)
MEASURE = parts(precision=real, confidence=real, memory=or_null(real))
BUDGET = parts(trials=or_null(whole), time=or_null(real), patience=or_null(whole), target=or_null(real))

SPACE = parts(
    knobs=object_of(
        parts(
            values=any_list,
            choices=any_list,
            range=any_list,
            permutation=any_list,
            assign=any_list,
            scale=text,
        )
    ),
    constraints=list_of(text),
    facts=any_object,
    workload=any_object,
)

STUDY = parts(space=SPACE, identity=any_object, source=text, search=SEARCH, measure=MEASURE, budget=BUDGET)

METRIC = parts(name=text, unit=text, at_most=or_null(real), at_least=or_null(real))

SEGMENT = parts(
    source_hash=text,
    repository=or_null(parts(head=any_object, diff=or_null(any_object))),
    files=list_of(parts(name=text, bytes=whole)),
)

SETTINGS = parts(
    search=SEARCH,
    measure=MEASURE,
    budget=BUDGET,
    engine=parts(version=text, code=text),
    space=text,
    part=flag,
    starting=real,
    sources=list_of(parts(study=or_null(at_least(0)), trials=at_least(0), apart=real)),
)

REASON = parts(
    success=real,
    seconds=real,
    score=real,
    credit=real,
    uses=real,
    level=real,
    log_probability=real,
    parent_metric=real,
    best=real,
    predicted=one_or_each(real),
    spread=one_or_each(real),
    logarithmic=one_or_each(flag),
    sources=object_of(real),
)

FACTS = parts(step=whole, steps=at_least(1), curve=list_of(list_of(real, 2)), resources=object_of(real))
"""Of a trial: how far it went, its curve as ``[step, value]``, and what its code takes."""

VERDICT = parts(
    configuration=or_null(any_object),
    baselines=any_list,
    label=text,
    remark=text,
    confidence=real,
    rounds=whole,
    processes=whole,
    strongest=text,
    waited=real,
    stalled=real,
    drift=real,
    shift=real,
    outcomes=object_of(list_of(text, 2)),
    across=list_of(parts(hash=text, configuration=any_object, found_by=list_of(whole))),
)

ENVIRONMENT = parts(
    machine=parts(hostname=text, memory_bytes=or_null(whole), processor=parts(name=text)),
    gpus=parts(devices=list_of(any_object)),
    packages=any_object,
    compilers=any_object,
    python=any_object,
    system=any_object,
    state=parts(pressure=parts(load1=real)),
)
"""Of a machine and its software."""
