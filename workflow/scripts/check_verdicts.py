"""Hold the verdicts of a run against the expected ones; one that changed stops the run where they
are enforced."""

from pathlib import Path

from dpsub.errors import DataError
from dpsub.files import replace_file
from dpsub.reproduce import verdicts
from dpsub.reproduce.job import logged

with logged(snakemake.log[0]):
    expected = verdicts.read_expected(Path(verdicts.__file__).parents[1] / "papers")
    text = verdicts.check(
        verdicts.read(Path(snakemake.input.comparison)), expected, snakemake.params.published
    )
    if snakemake.params.mode == "enforce" and not text.startswith(verdicts.AS_EXPECTED):
        raise DataError(text)
    replace_file(Path(snakemake.output[0]), f"{text}\n".encode())
