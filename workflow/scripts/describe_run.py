"""Write the whole configuration of a run, and the environment in which it runs."""

import importlib.metadata
import json
import os
import platform
from pathlib import Path

import yaml

from dpsub.files import replace_file
from dpsub.reproduce.job import logged

with logged(snakemake.log[0]):
    installed = {
        found.metadata["Name"]: found.version for found in importlib.metadata.distributions()
    }
    environment = {
        "commit": snakemake.params.commit,
        "date": snakemake.params.date,
        "versions": snakemake.params.versions,
        "installed": dict(sorted(installed.items(), key=lambda item: item[0].lower())),
        "volatile": {"platform": platform.platform(), "cpus": os.cpu_count()},
    }
    text = yaml.safe_dump(snakemake.params.config, sort_keys=False, allow_unicode=True)
    replace_file(Path(snakemake.output.config), text.encode())
    replace_file(
        Path(snakemake.output.environment),
        f"{json.dumps(environment, indent=1, ensure_ascii=False)}\n".encode(),
    )
