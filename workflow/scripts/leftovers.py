"""What jobs on a cluster have finished after the run that submitted them was killed.

Snakemake's books do not say what such a file was made from, so Snakemake would take it, and not make it again when the
code changes. Records say it themselves, in their metadata: those that this run would make the same way are kept and
entered; everything else is removed and made again, which takes seconds.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from dpsub.errors import DataError
from dpsub.reproduce import experiments, provenance, records
from dpsub.reproduce.plan import Plan, RecordPart

SCRIPT = Path(__file__).with_name("run_experiment.py")


def settle(plan: Plan, command: Sequence[str], log: TextIO) -> None:
    """Keep or remove the files that Snakemake, called by `command`, finds there without knowing how they were made."""
    parts = {plan.record(part): part for name in plan.experiments for part in plan.parts(name)}
    unknown = _unknown(command, log)
    kept = [path for path in unknown if path in parts and would_be_made_again(plan, parts[path])]
    for path in unknown:
        if path not in kept:
            path.unlink(missing_ok=True)
    if kept:
        entered = [*command, "--touch", "--force", "--", *map(str, kept)]
        subprocess.run(entered, stdout=log, stderr=subprocess.STDOUT, check=False)


def would_be_made_again(plan: Plan, part: RecordPart) -> bool:
    """Return whether the record of `part` is complete, and made by this code, on these data, with these settings."""
    try:
        _, origin = records.read(plan.record(part))
    except DataError:
        return False
    module = experiments.REGISTRY.get(part.experiment).__module__
    code = provenance.digest(module, "dpsub.reproduce.records", files=[SCRIPT])
    data = {name: plan.data_file(name) for name in plan.data_sets(part.experiment)}
    return (
        (origin.variant, origin.part, origin.first, origin.stop) == (part.variant, part.part, part.first, part.stop)
        and origin.config_digest == plan.config_digest(part.experiment)
        and origin.code_digest == code
        and all(path.exists() for path in data.values())
        and origin.inputs == {name: provenance.file_digest(path) for name, path in data.items()}
    )


def _unknown(command: Sequence[str], log: TextIO) -> list[Path]:
    """Return the files of the run that are there without an entry in Snakemake's books: not even of a log file."""
    done = subprocess.run([*command, "--summary"], stdout=subprocess.PIPE, stderr=log, text=True, check=False)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    rows = rows[1:] if rows and rows[0][0] == "output_file" else []
    return [Path(row[0]) for row in rows if len(row) > 3 and row[3] == "-" and Path(row[0]).exists()]
