"""Convert a transcription of the numbers of the importance-sampling paper into `data/published/importance/*.csv`.

The source folder holds table1_datasets.csv, table2_timing.csv, table3_timing.csv, figures_index.csv, text_claims.csv.
Which texts are numbers, which are statements, and the errata (described in the documentation of deviations) stand
below. Run by hand:

    python workflow/scripts/convert_published_importance.py --source folder --target data/published/importance
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

from dpsub import published

PAPER = "importance"
QUANTITIES = {
    "n_after_outlier_removal": "n", "n_original": "n_original", "d": "d", "r_max_l2_norm": "radius",
    "x_tilde_mean_sq_l2_norm": "mean_square",
}  # fmt: skip
# claim -> text that is put to a computation
STATEMENTS = {
    "c01": "for epsilon above 1, amplification by uniform sampling is about epsilon - log(1/p)",
    "c10": "the privacy-constrained weights and the variance-optimal weights are almost identical",
    "c11": "privacy-constrained sampling substantially improves on uniform sampling in MSE and largest loss",
    "c12": "m at most n x/r^2 is necessary for the coreset's rates to be probabilities",
    "c17": "the grid of epsilon is 0.5, 1, 3, 10, 30, 100, 300, 1000",
    "c29": "uniform sampling always yields the worst results on KDD-Protein, RNA, Song and Covertype",
    "c30": "opt performs on par with core or slightly better",
    "c31": "as epsilon falls to 0 the cost approaches but stays below the mean squared norm",
    "c32": "on Ijcnn1 the samplers differ least at m = 15000",
    "c33": "on Ijcnn1 uniform sampling is worse at m = 10000",
    "c34": "core and opt are better on Pose, MiniBooNE and FMA",
    "c36": "with a profile constant in the weight, Theorem 6 is log(1 + p (exp(epsilon) - 1))",
}
TIMINGS = {"c27": "slightly more than 4%", "c28": "negligible", "c35": "dual AMD Epyc, 2 x 64 cores at 2.25 GHz, 2 TiB"}
NUMBERS = {
    "c02": ("n", "setting"), "c03": ("d", "setting"), "c04": ("variance", "setting"), "c05": ("m", "setting"),
    "c06": ("smallest_scale", "setting"), "c07": ("largest_scale", "setting"), "c08": ("runs", "setting"),
    "c09": ("variance", "exact"), "c13": ("iterations", "setting"), "c14": ("clusters", "setting"),
    "c15": ("rho", "setting"), "c16": ("percentile", "setting"), "c18": ("share", "setting"),
    "c19": ("share", "setting"), "c20": ("replicates", "setting"), "c21": ("smallest_m", "setting"),
    "c22": ("largest_m", "setting"), "c24": ("epsilon", "setting"), "c25": ("m", "setting"),
    "c26": ("percent", "exact"),
}  # fmt: skip
# the transcription gives two values in one field
PAIRS = {"c23": (("smaller_epsilon", "3"), ("larger_epsilon", "100"))}
ERRATA = {
    "c01": ("suspect", "IM9", "holds only where p (exp(epsilon) - 1) is far above 1"),
    "c05": ("as_printed", "", "target and scale of the panel are not stated; three readings are computed"),
    "c12": ("suspect", "IM6", "necessary for a mixture without uniform part only"),
    "c17": ("as_printed", "IM20", "the released plots have 50 for 30; both are computed"),
    "c20": ("as_printed", "", "median with quartiles"),
    "c26": ("as_printed", "", "Table 2 prints 3.53"),
    "c27": ("as_printed", "", "Table 2 prints 4.30"),
}


def row(artefact: str, key: str, column: str, printed: str, kind: str, **more: str) -> dict[str, str]:
    filled = dict.fromkeys(published.COLUMNS, "") | {"paper": PAPER, "status": "as_printed"}
    return {**filled, "artefact": artefact, "row": key, "column": column, "printed": printed, "kind": kind, **more}


def table1(rows: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    for cell in rows:
        key = published.row_key(dataset=cell["dataset"])
        where = "Section 5" if cell["table"] == "sec5" else ""
        yield row("table1", key, QUANTITIES[cell["quantity"]], cell["value"], "real_data", note=where)


def timing(name: str, rows: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    for cell in rows:
        fields = {"dataset": cell["dataset"], "sampler": cell["sampler"]}
        key = published.row_key(**fields, **({} if cell["m"] == "n" else {"m": int(cell["m"])}))
        column = "m_over_n_percent" if cell["quantity"] == "m_over_n" else cell["quantity"]
        yield row(name, key, column, cell["value"], "exact" if cell["kind"] == "analytic" else "timing")


def figures(rows: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    for cell in rows:
        key = published.row_key(panel=cell["panel"].replace("|", ", "))
        text = f"{cell['y_axis']} against {cell['x_axis']}: {cell['series'].replace('|', ', ')}"
        yield row(f"figure{cell['figure']}", key, "panel", text, "structure", note=cell["dataset"].replace("|", ", "))


def claims(rows: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    for claim in rows:
        name, where = claim["id"], f"Appendix {claim['section']}" if claim["section"] == "B" else claim["section"]
        status, erratum, note = ERRATA.get(name, ("as_printed", "", ""))
        more = {"status": status, "erratum": erratum, "note": f"{where}: {note}" if note else where}
        if name in PAIRS:
            yield from (row("claims", name, column, text, "setting", **more) for column, text in PAIRS[name])
        elif name in NUMBERS:
            column, kind = NUMBERS[name]
            yield row("claims", name, column, claim["value"], kind, **more)
        elif name in TIMINGS:
            yield row("claims", name, "time", TIMINGS[name], "timing", **more)
        else:
            yield row("claims", name, "holds", STATEMENTS[name], "claim", **more)


def main() -> None:
    """Write one file an artefact."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="folder of the transcription")
    parser.add_argument("--target", type=Path, required=True, help="folder to write, data/published/importance")
    options = parser.parse_args()
    names = ("table1_datasets", "table2_timing", "table3_timing", "figures_index", "text_claims")
    read = {}
    for name in names:
        with (options.source / f"{name}.csv").open(newline="", encoding="utf-8") as stream:
            read[name] = list(csv.DictReader(stream))
    rows = [
        *table1(read["table1_datasets"]),
        *timing("table2", read["table2_timing"]),
        *timing("table3", read["table3_timing"]),
        *figures(read["figures_index"]),
        *claims(read["text_claims"]),
    ]
    options.target.mkdir(parents=True, exist_ok=True)
    for artefact in sorted({cell["artefact"] for cell in rows}):
        path = options.target / f"{artefact}.csv"
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, published.COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(cell for cell in rows if cell["artefact"] == artefact)
        print(f"{path}: {len(published.read(path))} rows")


if __name__ == "__main__":
    main()
