"""Describe the files of a results folder, each with its sum, as an RO-Crate."""

import json
from pathlib import Path

from dpsub.files import checksum, replace_file
from dpsub.reproduce import sums
from dpsub.reproduce.crate import crate
from dpsub.reproduce.job import logged


def json_of(path):
    return json.loads(Path(path).read_text(encoding="utf-8"))


with logged(snakemake.log[0]):
    output = Path(snakemake.output[0])
    # of tables, figures and pages the sums that their jobs wrote: nothing made later is vouched for
    made = sums.read(map(Path, snakemake.input.sums))
    for path in map(Path, [*snakemake.input.records, *snakemake.input.run]):
        made[path.relative_to(output.parent).as_posix()] = checksum(path)
    described = crate(
        made, json_of(snakemake.input.environment), map(json_of, snakemake.input.data)
    )
    replace_file(output, f"{json.dumps(described, indent=1, ensure_ascii=False)}\n".encode())
