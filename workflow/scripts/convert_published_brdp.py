"""Convert a transcription of the claims of Jiang et al. 2024 into `data/published/brdp/claims.csv`.

The source is a CSV with the fields id, where, description, value, tolerance, kind. Which of them are clock times and
settings follows from the kinds there; statements and printed numbers with a tolerance become claims. The errata
(described in the documentation of deviations) stand below. Run by hand:

    python workflow/scripts/convert_published_brdp.py --source claims.csv --target data/published/brdp
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from dpsub import published

# name of a setting in the source -> name of the quantity here
SETTINGS = {"D": "sensitivity", "Delta_f": "sensitivity", "Delta_f_a": "sensitivity", "Delta_f_b": "sensitivity",
            "theta": "bound", "eps": "epsilon", "T": "n_compositions", "p_c": "share"}  # fmt: skip
ERRATA = {
    "T1.Lap-DP": ("as_printed", "BR19", "sensitivity, bound and conversion are not stated"),
    "T1.Gau-DP": ("as_printed", "BR19", "sensitivity, bound and conversion are not stated"),
    "T1.Lap-BRDP": ("suspect", "BR11", "met only with a kernel that accepts less than plain Laplace"),
    "T1.Gau-BRDP": ("as_printed", "BR19", "sensitivity and bound are not stated"),
    "T1.SMP-Lap-BRDP": ("suspect", "BR19", "the sampling rate is not stated; amplified once, after composition"),
    "T1.SMP-Gau-BRDP": ("suspect", "BR19", "the sampling rate is not stated; amplified once, after composition"),
    "T1.order.gaubrdp_min": ("suspect", "BR7", "reverses within Theorem 3; exact accounting has it by a hair"),
    "T1.order.smp": ("as_printed", "BR19", ""),
    "C.fig4.br_ge_dp": ("as_printed", "BR3", ""),
    "C.fig4a.cross": ("as_printed", "BR3", "delta is not stated"),
    "C.fig5.lower": ("suspect", "BR7", "not from T = 10 on by Theorem 3, not at T = 100 exactly, never for Laplace"),
    "C.fig6.sum": ("suspect", "BR9", "the sensitivity of the rescaled statistic is D / p"),
    "C.fig6.avg": ("suspect", "BR9", "the sensitivity of the rescaled statistic is D / p"),
    "C.fig6.cnt": ("suspect", "BR9", "the sensitivity of the rescaled statistic is D / p"),
    "C.fig6b.X": ("suspect", "BR9", "the sensitivity of the rescaled statistic is D / p"),
    "C.fig7.always": ("suspect", "BR6 BR20", "ties count as no gain"),
    "C.fig7.smp": ("suspect", "BR9", ""),
    "C.thm1": ("suspect", "BR1", "a privacy loss has E[exp(-loss)] = 1"),
    "C.prop2": ("suspect", "BR2", ""),
    "C.thm2": ("suspect", "BR4", ""),
    "C.eq10": ("suspect", "BR5", ""),
    "C.thm3": ("suspect", "BR7", ""),
    "C.alg3": ("suspect", "BR8", ""),
    "C.prop6.sum": ("as_printed", "BR16", "samples of fixed size"),
    "C.prop7": ("suspect", "BR10", ""),
    "P.Sec8.1.gowalla_checkins": ("as_printed", "BR22", ""),
    "P.Sec8.1.adult_records": ("as_printed", "BR22", ""),
}


def rows(claim: dict[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (column, printed, kind) of a claim."""
    name, value = claim["id"], claim["value"]
    if claim["kind"] == "parameter":
        parts = [part.split("=") for part in value.split(";")] if "=" in value else [[name.rsplit(".", 1)[1], value]]
        for field, number in parts:
            yield SETTINGS.get(field, field), str(Decimal(number)), "setting"
    elif claim["kind"] in ("runtime", "derived"):
        yield "runtime", value, "timing"
    else:
        said = f"{claim['description']} ({value}; {claim['tolerance']})" if claim["kind"] == "table" else (
            claim["description"])  # fmt: skip
        yield "holds", said, "claim"


def erratum(name: str) -> tuple[str, str, str]:
    """Return status, errata and note of a claim; a cell of Table I takes those of its method."""
    found = ERRATA.get(name)
    if found is None and ".eps." in name:
        found = ERRATA.get(name.split(".eps.")[0])
    return found or ("as_printed", "", "")


def main() -> None:
    """Write the claims."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="the transcription")
    parser.add_argument("--target", type=Path, required=True, help="folder to write, data/published/brdp")
    options = parser.parse_args()
    with options.source.open(newline="", encoding="utf-8") as stream:
        # "=" separates field and value in the key of a row
        claims = [{**claim, "id": claim["id"].replace(">=", "_ge_")} for claim in csv.DictReader(stream)]
    options.target.mkdir(parents=True, exist_ok=True)
    path = options.target / "claims.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, published.COLUMNS, lineterminator="\n")
        writer.writeheader()
        for claim in claims:
            status, names, note = erratum(claim["id"])
            for column, printed, kind in rows(claim):
                writer.writerow({
                    "paper": "brdp", "artefact": "claims", "row": claim["id"], "column": column, "printed": printed,
                    "kind": kind, "replicates": "", "spread": "", "status": status, "erratum": names,
                    "note": f"{claim['where']}: {note}" if note else claim["where"],
                })  # fmt: skip
    print(f"{path}: {len(published.read(path))} rows of {len(claims)} claims")


if __name__ == "__main__":
    main()
