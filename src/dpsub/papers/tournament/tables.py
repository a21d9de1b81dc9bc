"""Tables: the noise that schemes need, its unavoidable part, the models that they train, and the
scheme to use in each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dpsub.papers.tournament.settings import RELATIONS, cell_of, why_not
from dpsub.reproduce.artefact import Records
from dpsub.reproduce.layout import Layout
from dpsub.reproduce.paired import REFERENCE, with_interval
from dpsub.reproduce.statistics import estimate_row
from dpsub.reproduce.study.cells import NONPRIVATE
from dpsub.reproduce.study.contests import Contest, contests
from dpsub.reproduce.tables import Row, Table, chosen
from dpsub.sampling.schemes import FIXED_SIZE, SCHEMES

NOISE, TRAINING = "tournament_noise", "tournament_training"
PLACE = ["adjacency", "n", "m", "epochs", "target_epsilon", "target_delta"]
TASK = ["dataset", "adjacency", "m", "epochs", "target_epsilon", "target_delta"]
BATCHES = {
    "fresh batches of any size": ("poisson", "truncated_poisson"),
    "fresh batches of one size": FIXED_SIZE,
    "batches with each record about once an epoch": (
        "k_of_t",
        "random_allocation",
        "shuffle",
        "cyclic_poisson",
        "deterministic",
    ),
}
"""Kind of batches that a training loop can draw -> the schemes of that kind."""
REGIMES = ("Poisson's noise below 1", "Poisson's noise 1 or more")
"""Regimes of noise, by Poisson's proved multiplier."""
ENDS = ("least", "median", "greatest")
UNKNOWN = "no attack is known that exceeds the target at any noise"


def kind_of_batches(sampler: str) -> str:
    """Return the kind of a sampler's batches, a key of `BATCHES`; "" if it is of none of them."""
    return next((kind for kind, names in BATCHES.items() if sampler in names), "")


def regime(noise: float) -> str:
    """Return the entry of `REGIMES` for a noise multiplier of Poisson's."""
    return REGIMES[int(noise >= 1)]


def over_poisson(records: pd.DataFrame) -> pd.DataFrame:
    """Return the settings of every scheme but Poisson, next to Poisson's of the same setting.

    Returns
    -------
    DataFrame
        A row for each setting and scheme: `PLACE`, `sampler`, `noise_multiplier`, `necessary` (NaN
        if unknown), the same of Poisson (`poisson_...`), `ratio` of the proved multipliers, its
        ends `lower` and `upper` (between which the ratio of what is sufficient lies: attack over
        Poisson's proof, proof over Poisson's attack) and `regime`.
        Relations and schemes stand in the order of `RELATIONS` and `SCHEMES`.

    Notes
    -----
    Where several bounds were asked for, the best proof and the best attack count.
    """
    both = ["noise_multiplier", "necessary"]
    by_scheme = records.groupby([*PLACE, "sampler"], sort=False)[both]
    # the smallest noise that is proved, the largest that is refuted
    best = by_scheme.agg({"noise_multiplier": "min", "necessary": "max"}).reset_index()
    # 0 stands for no known attack, of which no ratio can be taken
    best = best.assign(necessary=best["necessary"].where(best["necessary"] > 0))
    base = best[best["sampler"] == REFERENCE].set_index(PLACE)[both].add_prefix("poisson_")
    ratios = best[best["sampler"] != REFERENCE].join(base, on=PLACE, how="inner")
    order = {name: i for names in (RELATIONS, SCHEMES) for i, name in enumerate(names)}
    ratios = ratios.sort_values(
        ["adjacency", "sampler"], key=lambda names: names.map(order), kind="stable"
    )
    proved = ratios["poisson_noise_multiplier"]
    # both bounds hold whatever the least sufficient noise is: refuted over proved is below its
    # ratio, proved over refuted above
    return ratios.assign(
        ratio=ratios["noise_multiplier"] / proved,
        lower=ratios["necessary"] / proved,
        upper=ratios["noise_multiplier"] / ratios["poisson_necessary"],
        regime=[regime(noise) for noise in proved],
    )


def shared(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return the settings that most schemes of a relation have, in which schemes are compared."""
    # means over settings that a scheme lacks would compare schemes at different settings
    count = ratios.groupby(PLACE)["sampler"].transform("size")
    # Settings that fewer schemes have would enter some means and not others.
    return ratios[count == count.groupby(ratios["adjacency"]).transform("max")]


def said(place: Mapping[Any, Any]) -> str:
    """Return the sizes and the target of a setting in words."""
    return ", ".join(f"{name.removeprefix('target_')} = {place[name]:.10g}" for name in PLACE[1:])


class NoiseOverPoisson(Table):
    """Noise over Poisson's at equal proved privacy, by scheme."""

    title = "Noise of each scheme over Poisson's at the same privacy target"
    name = "noise"
    caption = (
        "Noise multiplier that is proved to meet the target for all steps together, divided by "
        "Poisson's for the same relation, n, m, epochs, ε and δ: the smallest, median and largest "
        "ratio over all settings of the grid. The interval contains the ratio of the smallest "
        "sufficient noise multipliers. Its lower bound is the noise refuted by an attack over the "
        "noise proved for Poisson; its upper bound is the noise proved over the noise refuted for "
        "Poisson. Without a known attack there is no interval. Needs more: settings in which an "
        "attack exceeds the target with Poisson's noise. Needs less: settings in which the scheme "
        "is proved with noise that an attack refutes for Poisson. Left out: settings of the grid "
        "that the scheme does not fit, for which it has no proof, or whose search is too slow."
    )
    keys = ("adjacency", "sampler")
    layout = Layout(panels=("adjacency",), stub=("sampler",), heads=("column",))
    experiments = (NOISE,)

    def rows(self, records: Records) -> list[Row]:
        frame = self.needed(records, NOISE)
        ratios = over_poisson(frame)
        rows = [
            row
            for key, part in ratios.groupby(["adjacency", "sampler"], sort=False)
            for row in _ends(key, part)
        ]
        return rows + list(_left_out(frame))


def _ends(key: Sequence[Any], part: pd.DataFrame) -> Iterator[Row]:
    row: Row = {"adjacency": key[0], "sampler": key[1], "variant": "rigorous"}
    # Of an even number the smaller of both middle ones: the row must be one that exists.
    ordered = part.sort_values("ratio", kind="stable").iloc[[0, (len(part) - 1) // 2, -1]]
    for name, setting in zip(ENDS, ordered.to_dict("records"), strict=True):
        note = said(setting) if setting["lower"] > 0 else f"{said(setting)}; {UNKNOWN}"
        yield {
            **row,
            "column": f"ratio_{name}",
            "value": setting["ratio"],
            "lower": setting["lower"],
            "upper": setting["upper"],
            "note": note,
        }
    counts = {
        "settings": len(part),
        # Ends of brackets: only what no better proof or attack can take back is counted.
        "needs_more": (part["lower"] >= 1).sum(),
        "needs_less": (part["upper"] <= 1).sum(),
    }
    for name, count in counts.items():
        yield {**row, "column": name, "value": float(count)}


def _left_out(frame: pd.DataFrame) -> Iterator[Row]:
    """Yield for each scheme the number of settings that Poisson has and the scheme lacks, with the
    reasons."""
    # Poisson has a bound wherever the grid asks for one: it says what was wanted.
    there = set(frame[[*PLACE, "sampler"]].itertuples(index=False, name=None))
    wanted = frame.loc[frame["sampler"] == REFERENCE, PLACE].drop_duplicates()
    for adjacency, places in wanted.groupby("adjacency", sort=False):
        for sampler in SCHEMES:
            lacking = [
                place
                for place in places.itertuples(index=False, name=None)
                if (*place, sampler) not in there
            ]
            reasons = Counter(
                why_not(cell_of(adjacency, sampler, *sizes)) for adjacency, *sizes in lacking
            )
            del reasons[""]  # the grid did not ask
            if reasons:
                yield {
                    "adjacency": adjacency,
                    "sampler": sampler,
                    "column": "left_out",
                    "variant": "rigorous",
                    "value": float(reasons.total()),
                    "note": "; ".join(reasons),
                }


class Parts(Table):
    """The part of the difference from Poisson that an attack shows, and the open part."""

    title = "How much of the extra noise is unavoidable?"
    name = "parts"
    caption = (
        "log(proved / Poisson's) = log(refuted / Poisson's) + log(proved / refuted), in percent "
        "(100 times the natural logarithm). Poisson's is its proved noise multiplier; refuted is "
        "the largest noise multiplier at which an attack exceeds the target. Means over the "
        "settings that all schemes share and in which an attack is known. The first part is "
        "unavoidable, as an attack shows it. The second part is open: a better attack moves noise "
        "to the first part, a better proof removes it. Settings are split by whether Poisson's "
        "proved noise multiplier is below 1."
    )
    keys = ("adjacency", "regime", "sampler")
    layout = Layout(panels=("adjacency", "regime"), stub=("sampler",), heads=("column",))
    experiments = (NOISE,)

    def rows(self, records: Records) -> list[Row]:
        return [
            {
                "adjacency": mean["adjacency"],
                "regime": mean["regime"],
                "sampler": mean["sampler"],
                "column": column,
                "variant": "rigorous",
                "value": mean[column],
                "note": "" if mean["settings"] else UNKNOWN,
            }
            for mean in parts(self.needed(records, NOISE)).to_dict("records")
            for column in ("settings", "difference", "of_the_scheme", "of_the_proof")
        ]


def parts(records: pd.DataFrame) -> pd.DataFrame:
    """Return mean log ratios in percent: a row for each relation, regime and scheme; NaN where no
    attack is known."""
    ratios = shared(over_poisson(records))
    percent = ratios.assign(
        settings=ratios["lower"].notna(),
        # Without an attack nothing says how much of the difference is the scheme's.
        difference=100 * np.log(ratios["ratio"]).where(ratios["lower"].notna()),
        of_the_scheme=100 * np.log(ratios["lower"]),
        of_the_proof=100 * np.log(ratios["ratio"] / ratios["lower"]),
    )
    by = percent.groupby(["adjacency", "regime", "sampler"], sort=False)
    return by.agg(
        {"settings": "sum", "difference": "mean", "of_the_scheme": "mean", "of_the_proof": "mean"}
    ).reset_index()


def tournament_contests(records: pd.DataFrame) -> list[Contest]:
    """Return the contests of the records of `tournament_training`, in their order, those without
    Poisson left out."""
    # One measure for all tasks, which are compared within themselves only.
    compared = contests(records, TASK, lambda place: "test_loss")
    return [contest for contest in compared if REFERENCE in contest.samplers]


def without_privacy(records: pd.DataFrame, contest: Contest) -> pd.DataFrame:
    """Return the records without privacy of the task and sizes of a contest."""
    free = records[records["sampler"] == NONPRIVATE]
    # Trained once for all relations and targets, so that only task and sizes have to agree.
    return chosen(free, {name: contest.place[name] for name in ("dataset", "m", "epochs")})


def key_of(contest: Contest) -> Row:
    """Return the fields of a contest as the tables have them."""
    place, dataset = contest.place, str(contest.place["dataset"])
    # unlike those that are told odd from even
    return {
        "dataset": dataset.replace("digits", "ten_digits"),
        "adjacency": place["adjacency"],
        "epsilon": place["target_epsilon"],
        "m": place["m"],
        "epochs": place["epochs"],
    }


class Losses(Table):
    """Test loss of every scheme, its paired difference from Poisson's, and ranks."""

    title = "Test loss at equal proved privacy"
    name = "losses"
    caption = (
        "Test loss of models trained with noise that is proved to meet the target. Step size and "
        "norm bound are chosen by the same rule for each scheme and seed, on the seed's validation "
        "part. Means over seeds with standard errors and 95 % Student intervals; differences from "
        "Poisson are paired by seed. Significant: 1 if the difference is significant by Holm's "
        "procedure at 5 % over the schemes of a block, else 0. Rank: 1 plus the number of schemes "
        "that are significantly better, by Holm's procedure at 5 % over all pairs of a block. "
        "Gradients: distinct records over all batches of the training. Non-private training clips "
        "but adds no noise."
    )
    keys = ("dataset", "adjacency", "epsilon", "m", "epochs", "sampler")
    layout = Layout(
        panels=("dataset", "adjacency", "epsilon", "m", "epochs"),
        stub=("sampler",),
        heads=("column",),
    )
    experiments = (TRAINING,)

    def rows(self, records: Records) -> list[Row]:
        frame = self.needed(records, TRAINING)
        rows: list[Row] = []
        for contest in tournament_contests(frame):
            # Without privacy first, as the row that all others are held against.
            trained = pd.concat([without_privacy(frame, contest), contest.records])
            for sampler, part in trained.groupby("sampler", sort=False):
                rows += _losses(contest, str(sampler), part)
        return rows


def _losses(contest: Contest, sampler: str, part: pd.DataFrame) -> Iterator[Row]:
    """Yield the numbers in the records `part` of one sampler in a contest."""
    row, source = {**key_of(contest), "sampler": sampler}, contest.source
    for column in ("test_loss", "accuracy", "gradients"):
        values = part[column].dropna().to_numpy(float)
        if len(values):
            yield estimate_row(row, column, "rigorous", with_interval(values), source)
    # Without privacy there is no contest: no rank, no difference.
    if sampler == NONPRIVATE:
        return
    numbers = {
        "noise_used": float(part["noise_multiplier"].iloc[0]),
        "rank": float(contest.ranks[sampler]),
    }
    if sampler != REFERENCE:
        difference = contest.difference(sampler)
        yield estimate_row(row, "difference_to_poisson", "rigorous", difference, source)
        # of all schemes at one place at once; the interval beside it holds its level on its own
        numbers["told_apart"] = float(contest.differs[sampler])
    for column, value in numbers.items():
        yield {**row, "column": column, "variant": "rigorous", "value": value, "note": source}


class Gradients(Table):
    """Gradient evaluations and test loss of every scheme, over Poisson's."""

    title = "Gradient evaluations over Poisson's"
    name = "gradients"
    caption = (
        "Distinct per-record gradients that the whole training evaluates, and the test loss, both "
        "over Poisson's at the same proved target: means of the ratios over tasks, targets, batch "
        "sizes and epochs, with the smallest and the largest."
    )
    keys = ("adjacency", "sampler")
    layout = Layout(panels=("adjacency",), stub=("sampler",), heads=("column",))
    experiments = (TRAINING,)

    def rows(self, records: Records) -> list[Row]:
        compared = tournament_contests(self.needed(records, TRAINING))
        ratios = pd.DataFrame([row for contest in compared for row in _over_poisson(contest)])
        return [
            {
                "adjacency": adjacency,
                "sampler": sampler,
                "column": column,
                "variant": "rigorous",
                "value": part[column].mean(),
                "lower": part[column].min(),
                "upper": part[column].max(),
                "note": f"{len(part)} comparisons",
            }
            for (adjacency, sampler), part in ratios.groupby(["adjacency", "sampler"], sort=False)
            for column in ("gradients_over_poisson", "loss_over_poisson")
        ]


def _over_poisson(contest: Contest) -> Iterator[Row]:
    """Yield the ratios of each scheme to Poisson in one contest."""
    means = contest.records.groupby("sampler", sort=False)[["gradients", "test_loss"]].mean()
    over = means / means.loc[REFERENCE]
    for sampler, ratio in over.drop(REFERENCE).iterrows():
        yield {
            "adjacency": contest.place["adjacency"],
            "sampler": sampler,
            "gradients_over_poisson": ratio["gradients"],
            "loss_over_poisson": ratio["test_loss"],
        }


class When(Table):
    """The scheme to use in each case: noise and loss next to Poisson's, by relation, size of the
    noise and kind of batches."""

    title = "Which scheme when"
    name = "when"
    caption = (
        "By adjacency relation, by Poisson's proved noise multiplier, and by what a training loop "
        "can draw: fresh batches of any size, fresh batches of one size, or batches with each "
        "record about once an epoch. Noise over Poisson's: median of the proved ratios over the "
        "settings that all schemes share, with the smallest and the largest. Refuted: percentage "
        "of settings in which an attack exceeds the target with Poisson's noise. Loss: number of "
        "comparisons with Poisson's test loss at the same target in which the scheme is "
        "significantly better, significantly worse, or not significantly different (Holm's "
        "procedure at 5 % over the schemes of a task and target)."
    )
    keys = ("adjacency", "regime", "batches", "sampler")
    layout = Layout(panels=("adjacency", "regime"), stub=("batches", "sampler"), heads=("column",))
    experiments = (NOISE, TRAINING)

    def rows(self, records: Records) -> list[Row]:
        lost = _told_apart(tournament_contests(self.needed(records, TRAINING)))
        ratios = shared(over_poisson(self.needed(records, NOISE)))
        groups: dict[Any, pd.DataFrame] = dict(
            iter(ratios.groupby(["adjacency", "regime", "sampler"], sort=False))
        )
        # By relation and noise, then by what the training loop can draw: as a reader decides.
        order = [
            (adjacency, size, sampler)
            for adjacency in ratios["adjacency"].unique()
            for size in REGIMES
            for names in BATCHES.values()
            for sampler in names
        ]
        return [row for key in order if key in groups for row in _when(key, groups[key], lost)]


Lost = Mapping[tuple[object, str, str], Counter[str]]


def _when(key: tuple[str, str, str], part: pd.DataFrame, lost: Lost) -> Iterator[Row]:
    row: Row = {
        "adjacency": key[0],
        "regime": key[1],
        "batches": kind_of_batches(key[2]),
        "sampler": key[2],
        "variant": "rigorous",
    }
    ratio, known = part["ratio"], part["lower"].notna()
    yield {
        **row,
        "column": "noise_over_poisson",
        "value": ratio.median(),
        "lower": ratio.min(),
        "upper": ratio.max(),
        "note": f"{len(part)} settings",
    }
    # Settings without an attack count as not refuted, which the note says.
    share = 100 * float((part["lower"] >= 1).mean())
    yield {
        **row,
        "column": "refuted_percent",
        "value": share,
        "note": "" if known.all() else UNKNOWN,
    }
    for name, count in lost.get(key, Counter()).items():
        yield {**row, "column": f"loss_{name}", "value": float(count)}


def _told_apart(compared: Sequence[Contest]) -> Lost:
    """Count for each relation, regime and scheme the contests in which its loss is significantly
    better, worse, or neither."""
    counts: dict[tuple[object, str, str], Counter[str]] = {}
    for contest in compared:
        of_poisson = contest.records[contest.records["sampler"] == REFERENCE]
        # a scheme counts where Poisson, which all are compared with, stands
        size = regime(float(of_poisson["noise_multiplier"].iloc[0]))
        for name, shown in contest.differs.items():
            answer = "not_shown"
            if shown:
                answer = "better" if contest.difference(name).value < 0 else "worse"
            key = (contest.place["adjacency"], size, name)
            count = counts.setdefault(key, Counter({"better": 0, "worse": 0, "not_shown": 0}))
            count[answer] += 1
    return counts
