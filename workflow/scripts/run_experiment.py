"""Run one part of one experiment in one variant and write its records.

By hand:
    python workflow/scripts/run_experiment.py --experiment distinct_counts --variant stated \
        --replicates 0:1 --part 1-of-1 --seed 1 --output distinct.parquet \
        --settings '{"draws": 100, "settings": [{"n": 300, "b": 50, "m": 30}]}'
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import one_sentence

from dpsub.errors import DataError
from dpsub.reproduce import experiments, provenance, records


def replicates(text: str) -> range:
    first, _, stop = text.partition(":")
    return range(int(first), int(stop))


def data_file(text: str) -> tuple[str, Path]:
    name, found, path = text.partition("=")
    if not found:
        raise argparse.ArgumentTypeError(f"must look like adult=path, got {text!r}")
    return name, Path(path)


def label_of(path: Path) -> str:
    try:
        return str(json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["label"])
    except (OSError, ValueError, KeyError):
        raise DataError(f"the prepared data {path} must have its description next to it; prepare it again") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", required=True)
    parser.add_argument("--variant", required=True)
    parser.add_argument("--part", required=True, help="which share of the replicates, as in 1-of-2")
    parser.add_argument("--replicates", required=True, type=replicates, metavar="FIRST:STOP")
    parser.add_argument("--seed", required=True, type=int)
    parser.add_argument("--settings", required=True, type=json.loads, metavar="JSON")
    parser.add_argument("--data", nargs="*", type=data_file, default=[], metavar="NAME=PATH")
    parser.add_argument("--records", nargs="*", type=Path, default=[], help="of experiments that it reads")
    parser.add_argument("--code", default="", help="digest of the code, for the records")
    parser.add_argument("--output", required=True, type=Path)
    options = parser.parse_args()

    experiment = experiments.REGISTRY.get(options.experiment)(records.gather(options.records))
    # What else is computed, and where, is no setting of this job: it must not make it run again.
    chosen = {**options.settings, "variants": [options.variant], "parts": 1}
    experiment.check(chosen)
    data = dict(options.data)
    frame = experiment.run(
        settings=chosen,
        variant=options.variant,
        replicates=options.replicates,
        root=options.seed,
        data=data,
    )
    origin = records.Origin(
        experiment=options.experiment,
        variant=options.variant,
        part=options.part,
        first=options.replicates.start,
        stop=options.replicates.stop,
        seed=options.seed,
        settings=options.settings,
        config_digest=provenance.settings_digest({"seed": options.seed, **options.settings}),
        code_digest=options.code,
        inputs={
            **{name: provenance.file_digest(path) for name, path in data.items()},
            **{"/".join(path.parts[-3:]): provenance.file_digest(path) for path in options.records},
        },
        data=", ".join(sorted({label_of(path) for path in data.values()})),
        versions=provenance.versions(),
    )
    records.write(options.output, frame, columns=experiment.columns, origin=origin)


if __name__ == "__main__":
    one_sentence.run(main)
