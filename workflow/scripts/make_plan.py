"""Write the plan of a run for the rules."""

import json
from pathlib import Path

from dpsub.files import replace_file
from dpsub.reproduce.job import logged

with logged(snakemake.log[0]):
    # inside, so that the log says what the environment lacks
    from dpsub.reproduce.planned import planned

    plan = json.dumps(planned(snakemake.params.config, Path(snakemake.params.root)))
    replace_file(Path(snakemake.output[0]), plan.encode())
