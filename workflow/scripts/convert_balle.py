"""Convert a transcription of the claims of Balle et al. into `data/published/balle/claims.csv`.

The source holds one line a claim: `id`, `where`, `description`, `value`, `tolerance`, `kind`. The tolerances are those
of the predicates in `dpsub.artefacts.balle.statements`. Run by hand:

    python workflow/scripts/convert_balle.py --source claims.csv --target data/published/balle
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from dpsub import published

# claim -> (status, erratum, what the verdict rests on beyond the statement)
REMARKS = {
    "B004": ("suspect", "BL1", "the mass of pi_1 is eta with the printed divisor"),
    "B011": ("suspect", "BL6", "two pairs of which neither dominates the other"),
    "B024": ("as_printed", "BL7", "as stated with the printed profile of randomised response also below epsilon = 0"),
    "B025": ("as_printed", "BL10", "within gamma^2 / 2; far off at large gamma"),
    "B026": ("suspect", "BL2", "0 where the universe holds a record outside the data"),
    "B028": ("suspect", "BL4", "false for p < 1/2"),
    "B029": ("suspect", "BL5", "needs an inclusion probability of eta"),
    "B033": ("suspect", "BL3", "as described a copy is added to m - 1 draws"),
    "B040": ("as_printed", "BL12", "for small epsilon only"),
    "B041": ("as_printed", "BL8", "the decomposition of the proof does not exist there"),
}
NUMBERS = {"B006": ("delta", "0")}


def rows(source: Path) -> Iterator[dict[str, str]]:
    """Yield the claims in the layout of `dpsub.published`."""
    with source.open(newline="", encoding="utf-8") as stream:
        for fields in csv.DictReader(stream):
            name = fields["id"]
            kind = "structure" if fields["kind"] == "figure" else "exact" if name in NUMBERS else "claim"
            column, printed = NUMBERS.get(name, ("properties" if kind == "structure" else "holds", statement(fields)))
            status, erratum, remark = REMARKS.get(name, ("as_printed", "", ""))
            yield {
                "row": name, "column": column, "printed": printed, "kind": kind, "replicates": "", "spread": "",
                "status": status, "erratum": erratum,
                "note": f"{fields['where']}: {remark}" if remark else fields["where"],
            }  # fmt: skip


def statement(fields: dict[str, str]) -> str:
    """Return the words of a claim, with its formula where it has one."""
    value = fields["value"]
    said = value != "formula" and (fields["kind"] == "formula" or any(sign in value for sign in "(/*+"))
    return f"{fields['description']}: {value}" if said else fields["description"]


def main() -> None:
    """Write the claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="the transcription")
    parser.add_argument("--target", type=Path, required=True, help="folder to write, data/published/balle")
    options = parser.parse_args()
    options.target.mkdir(parents=True, exist_ok=True)
    path = options.target / "claims.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, published.COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({"paper": "balle", "artefact": "claims", **row} for row in rows(options.source))
    print(f"{path}: {len(published.read(path))} rows")


if __name__ == "__main__":
    main()
