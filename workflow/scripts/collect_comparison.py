"""Put the comparisons of all artefacts into one file, in the order given."""

from pathlib import Path

import pandas as pd

from dpsub.files import replace_file
from dpsub.reproduce import sums
from dpsub.reproduce.artefact import csv_bytes
from dpsub.reproduce.job import logged
from dpsub.reproduce.verdicts import COLUMNS, read

with logged(snakemake.log[0]):
    frames = [frame for path in snakemake.input if not (frame := read(Path(path))).empty]
    whole = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=list(COLUMNS))
    written = Path(snakemake.output.comparison)
    replace_file(written, csv_bytes(whole))
    sums.write(Path(snakemake.output.sums), [written], written.parent)
