"""The size of a sweep before anything runs: cells, jobs, expected core-hours and memory.

SWEEP is a YAML file such as those in docs/how-to/sweeps.md; later files override it. Finished work
is not counted again. Nothing is written.

JSON: cells, cells_finished, records (one per cell and seed), records_to_compute, jobs, core_hours,
cores, hours (on these cores), longest_job_minutes, memory_mib_per_job (the largest), memory_mib
(of the largest jobs on all cores), files_by_other_code (finished record files made by another
version of the code), results_dir.
"""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from dpsub.accounting.questions.words import Line, near, plural
from dpsub.cli.answers import Answer
from dpsub.cli.parsing import Parser, whole_number
from dpsub.errors import ArgumentError


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "sweep",
        nargs="+",
        type=Path,
        metavar="SWEEP",
        help="YAML files; later ones override earlier ones",
    )
    # The cores that this process may use, which in a container are fewer than the machine has.
    here = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--cores",
        type=whole_number,
        default=here,
        metavar="N",
        help=f"cores to compute on (default: {here})",
    )


def run(arguments: Namespace) -> Answer:
    from dpsub.reproduce import sweep

    if arguments.cores < 1:
        raise ArgumentError(f"--cores must be at least 1, got {arguments.cores}")
    plan = sweep.SweepPlan(sweep.load(arguments.sweep))
    totals = plan.totals(arguments.cores)
    lines: list[Line] = [
        ("cells", f"{totals['cells']}, {totals['cells_finished']} of them finished"),
        ("records", f"{totals['records']}, {totals['records_to_compute']} of them to compute"),
        ("jobs", f"{totals['jobs']}, the longest {near(totals['longest_job_minutes'])} min"),
        (
            "core-hours",
            f"{near(totals['core_hours'])}, which is {near(totals['hours'])} h on "
            f"{plural(totals['cores'], 'core')}",
        ),
        (
            "memory",
            f"{totals['memory_mib_per_job']:.0f} MiB for the largest job, "
            f"{totals['memory_mib']:.0f} MiB on {plural(totals['cores'], 'core')}",
        ),
        ("results", totals["results_dir"]),
    ]
    # They are kept, since deleting results is the user's decision.
    if totals["files_by_other_code"]:
        many = plural(totals["files_by_other_code"], "finished record file")
        lines.append(
            ("note", f"{many} made by another version of the code; delete to compute again")
        )
    return Answer(totals, f"Plan of {', '.join(map(str, arguments.sweep))}", lines)
