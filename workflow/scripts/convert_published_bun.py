"""Convert a transcription of the claims of Bun et al. into `data/published/bun/claims.csv`.

The source is a CSV with the fields id, where, description, value, tolerance, kind. Which of them are numbers, and the
errata (described in the documentation of deviations), stand below. Run by hand:

    python workflow/scripts/convert_published_bun.py --source claims.csv --target data/published/bun
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from dpsub import published

# claim -> name of the quantity, text as printed, kind; all others are statements
NUMBERS = {
    "U004": ("epsilon_amplified", "0.01", "exact"),
    "U005": ("epsilon_amplified", "1", "exact"),
    "U006": ("epsilon", "100", "exact"),
    "U010": ("n", "10000", "setting"),
    "U011": ("epsilon", "0.01", "setting"),
    "U012": ("mean_over_n", "0.5", "setting"),
    "U014": ("epsilon_amplified", "0.005", "exact"),
    "U022": ("variance_times_epsilon_squared", "1", "exact"),
    "U027": ("constant", "6", "exact"),
    "U044": ("strata", "12", "setting"),
    "U045": ("m", "10000", "setting"),
    "U046": ("top_code", "10000", "setting"),
    "U049": ("change", "19", "exact"),
}
ERRATA = {
    "U004": ("as_printed", "BN2", "rounded down: log(1 + 0.01 (e - 1))"),
    "U005": ("suspect", "BN2", "dividing by the rate holds only for small epsilon'"),
    "U006": ("suspect", "BN2", "log(1 + 100 (e - 1))"),
    "U007": ("suspect", "BN1", "e^epsilon must be e^(2 epsilon)"),
    "U016": ("suspect", "BN1", "holds if the curve covers the exact worst loss"),
    "U017": ("suspect", "BN1", "holds if the curve covers the exact worst loss"),
    "U018": ("suspect", "BN1", "holds if the curve covers the exact worst loss"),
    "U019": ("suspect", "BN1", "holds if the curve covers the exact worst loss"),
    "U015": ("as_printed", "BN1", "the true limit for epsilon-deletion mechanisms is 2 epsilon"),
    "U022": ("suspect", "BN3", "the variance of Lap(1/epsilon) is 2/epsilon^2"),
    "U023": ("suspect", "BN3", "the proof needs replacement estimators"),
    "U027": ("as_printed", "BN7", "rigorous: the constant of the exact loss, 3 - 2r at r = 1/10"),
    "U030": ("as_printed", "BN5", "sizes of the smaller population"),
    "U031": ("as_printed", "BN6", "sizes of the smaller population"),
    "U036": ("suspect", "BN4", "the conditional loss is taken in the other direction in the proof"),
    "U040": ("suspect", "BN16", "depends on the method of PPS sampling"),
    "U041": ("as_printed", "BN14", "the loss is even above epsilon"),
    "U043": ("suspect", "BN15", "not when a record is inserted"),
    "U047": ("as_printed", "BN9", "holds if shares of m round to the vector"),
    "U048": ("as_printed", "BN9", "holds if shares of m round to the vector"),
    "U050": ("suspect", "BN9", ""),
    "U052": ("suspect", "BN9", "Section E.1 lists 5,000 to 10,000"),
    "U055": ("as_printed", "BN11", "deletions; a replacement across strata adds two losses"),
    "U056": ("suspect", "BN8", ""),
    "U057": ("suspect", "BN7", "a replacement-DP mechanism may show the size"),
    "U061": ("suspect", "BN7", "lacks the factor e^(2 epsilon) - 1"),
}


def main() -> None:
    """Write the claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="the transcription")
    parser.add_argument("--target", type=Path, required=True, help="folder to write, data/published/bun")
    options = parser.parse_args()
    with options.source.open(newline="", encoding="utf-8") as stream:
        claims = list(csv.DictReader(stream))
    options.target.mkdir(parents=True, exist_ok=True)
    path = options.target / "claims.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, published.COLUMNS, lineterminator="\n")
        writer.writeheader()
        for claim in claims:
            name = claim["id"]
            column, printed, kind = NUMBERS.get(name, ("holds", claim["description"], "claim"))
            status, erratum, note = ERRATA.get(name, ("as_printed", "", ""))
            writer.writerow({
                "paper": "bun", "artefact": "claims", "row": name, "column": column, "printed": printed, "kind": kind,
                "replicates": "", "spread": "", "status": status, "erratum": erratum,
                "note": f"{claim['where']}: {note}" if note else claim["where"],
            })  # fmt: skip
    print(f"{path}: {len(published.read(path))} rows")


if __name__ == "__main__":
    main()
