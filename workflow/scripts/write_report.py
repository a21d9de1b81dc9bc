"""Write the report of a run, one page in HTML.

By hand, after a run:
    python workflow/scripts/write_report.py --results results --output results/report/index.html \
        --artefacts must/table9 --comparison results/comparison.csv --environment results/run/environment.json \
        --config results/run/config.yaml --seed 1
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import one_sentence

from dpsub.reproduce import artefacts, report, settings, verdicts
from dpsub.reproduce.artefact import OutputDirs
from dpsub.reproduce.papers import errata_files


def twins(config: Path) -> list[str]:
    """Return the data sets of which experiments make twins, from the whole configuration."""
    described = settings.read(config)["experiments"].values()
    return sorted({name for found in described for name in found.get("sets", {}).get("twins", ())})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", required=True, type=Path, help="results folder")
    parser.add_argument("--artefacts", nargs="*", default=[], metavar="PAPER/NAME", help="in the order of the report")
    parser.add_argument("--comparison", required=True, type=Path)
    parser.add_argument("--environment", required=True, type=Path, help="versions, from describe_run.py")
    parser.add_argument("--config", required=True, type=Path, help="the whole configuration, from describe_run.py")
    parser.add_argument("--data", nargs="*", type=Path, default=[], help="descriptions (JSON) of prepared data sets")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--configuration", default="", help="digest of the configuration")
    parser.add_argument("--remark", action="append", default=[], help="a sentence for the top of the report")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()
    environment = json.loads(options.environment.read_text(encoding="utf-8"))
    run = report.Run(
        artefacts=[artefacts.REGISTRY.get(name)() for name in options.artefacts],
        dirs=OutputDirs.under(options.results),
        comparison=verdicts.read(options.comparison),
        data=[json.loads(path.read_text(encoding="utf-8")) for path in options.data],
        errata=errata_files(),
        provenance={
            "seed": options.seed,
            "commit": environment["commit"],
            "configuration": options.configuration[:12],
        },
        environment=environment,
        configuration=options.config.read_text(encoding="utf-8"),
        logs=options.results / "logs",
        twins=twins(options.config),
        remarks=options.remark,
    )
    report.write_report(options.output, run)


if __name__ == "__main__":
    one_sentence.run(main)
