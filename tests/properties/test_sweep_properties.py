"""Jobs hold each piece of work once, in order, and as much as they may, whatever the costs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dpsub.reproduce.experiment import Cost
from dpsub.reproduce.packing import BASE_SECONDS, SweepCell, Work, gaps, pack

COSTS = st.builds(
    Cost,
    setup=st.floats(0, 50),
    replicate=st.floats(1e-6, 50),
    memory=st.sampled_from([1.0, 700.0, 9000.0]),
)
ITEMS = st.lists(st.tuples(COSTS, st.integers(1, 30)), min_size=1, max_size=30)


def priced(items: list[tuple[Cost, int]]) -> list[tuple[Work, Cost, tuple[str, ...]]]:
    cells = [
        SweepCell("x", "stated", None, {"m": number}, f"{number:032x}")
        for number in range(len(items))
    ]
    return [
        (Work(cell, 0, count), cost, ()) for cell, (cost, count) in zip(cells, items, strict=True)
    ]


@given(ITEMS, st.floats(BASE_SECONDS + 1, 2000))
def test_every_replicate_is_in_one_job(items: list[tuple[Cost, int]], seconds: float) -> None:
    found = [
        (work.cell.varied["m"], number)
        for job in pack(priced(items), seconds=seconds)
        for work in job.work
        for number in range(work.first, work.stop)
    ]
    assert sorted(found) == [
        (m, number) for m, (_, count) in enumerate(items) for number in range(count)
    ]


@given(ITEMS, st.floats(BASE_SECONDS + 1, 2000))
def test_only_a_single_replicate_makes_a_longer_job(
    items: list[tuple[Cost, int]], seconds: float
) -> None:
    for job in pack(priced(items), seconds=seconds):
        if job.seconds > seconds * (1 + 1e-9):
            (work,) = job.work
            assert work.stop - work.first == 1


@given(ITEMS, st.floats(BASE_SECONDS + 1, 2000))
def test_neighbours_of_one_kind_do_not_fit_together(
    items: list[tuple[Cost, int]], seconds: float
) -> None:
    same = [(Cost(cost.setup, cost.replicate, 1.0), 1) for cost, _ in items]
    jobs = pack(priced(same), seconds=seconds)
    whole = sum(cost.seconds(1) for cost, _ in same)
    # filling one after the other leaves no two neighbours that fit into one job, so at most twice
    # the least number
    assert len(jobs) <= 2 * whole / (seconds - BASE_SECONDS) + 1


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40)), max_size=8), st.integers(1, 60))
def test_gaps_are_what_no_range_covers(spans: list[tuple[int, int]], replicates: int) -> None:
    done = [range(first, first + length) for first, length in spans]
    missing = [number for gap in gaps(done, replicates) for number in gap]
    assert missing == [
        number for number in range(replicates) if not any(number in span for span in done)
    ]
