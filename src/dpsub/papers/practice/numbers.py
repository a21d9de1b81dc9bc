"""Numbers of the pages on accounting in practice that take several cells of a run, for the
placeholders `numbers` and `derived`."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from dpsub.papers.practice.packages import Accountant, Package, asked, packages, says
from dpsub.papers.practice.settings import ACCOUNTANTS, ONE_READING, UPPER, AccountingQuestion
from dpsub.reproduce.claims import MissingRecordsError
from dpsub.reproduce.report.cells import LookUp

SETTING = ("mechanism", "sampler", "adjacency", "noise_multiplier", "steps", "delta")
SIZES = ("rate", "n", "m")
BATCHES = ["adjacency", "m", "epochs", "noise_multiplier"]


def answers(cells: LookUp, accountant: str = "*") -> pd.DataFrame:
    """Return the judged answers of one accountant or of all, with the numbers `claimed`, `attained`
    and `proved`."""
    return _answers(cells, "accountants", accountant=accountant)


def _answers(cells: LookUp, table: str, **keys_of_answers: str) -> pd.DataFrame:
    any_setting = dict.fromkeys(SETTING, "*")
    holds, lower, upper = [], [], []
    # Poisson samples are recorded by rate, samples of fixed size by n and m, cut samples by all
    # three and random allocation by none.
    for given in ((), ("rate",), ("n", "m"), ("rate", "n", "m")):
        question = {**any_setting, **dict.fromkeys(given, "*")}
        holds.append(cells.rows(table, "holds", **keys_of_answers, **question))
        lower.append(cells.rows(table, "epsilon_lower", **question))
        upper.append(cells.rows(table, "epsilon_upper", **question))
    judged = pd.concat(holds)
    if judged.empty or "rigorous" not in judged:
        raise MissingRecordsError("this run judges no accountant")
    keys = [name for name in (*SETTING, *SIZES) if name in judged]
    judged = with_end(judged, pd.concat(lower), keys, "attained")
    judged = with_end(judged, pd.concat(upper), keys, "proved")
    judged = judged.assign(claimed=pd.to_numeric(judged["printed"], errors="coerce"))
    # Rows without a printed answer: the accountant has no method there.
    judged = judged[judged["claimed"].notna()]
    if judged.empty:
        raise MissingRecordsError(f"this run has no answer in {table}")
    return judged


def with_end(rows: pd.DataFrame, ends: pd.DataFrame, keys: list[str], name: str) -> pd.DataFrame:
    """Return rows with one end of epsilon next to each, in a column of this name."""
    return rows.merge(ends[[*keys, "rigorous"]].rename(columns={"rigorous": name}), on=keys)


def accountants(cells: LookUp) -> list[dict[str, Any]]:
    """Return for each accountant the numbers of proved, refuted and open answers, and the least and
    the largest ratio of an answer to the epsilon that an attack attains."""
    judged = answers(cells)
    # Below 1 an upper bound is refuted.
    judged = judged.assign(ratio=judged["claimed"] / judged["attained"])
    found = []
    for name, meant_as in ACCOUNTANTS.items():
        own = judged[judged["accountant"] == name]
        if not own.empty:
            found.append({"name": name, "meant_as": meant_as, **_counted_verdicts(own)})
    return found


def _counted_verdicts(own: pd.DataFrame) -> dict[str, Any]:
    counts = own["verdict"].value_counts()
    return {
        "answers": len(own),
        **{verdict: counts.get(verdict, 0) for verdict in ("proved", "refuted", "open")},
        "least": own["ratio"].min(),
        "most": own["ratio"].max(),
    }


@dataclass(frozen=True)
class Refuted:
    """Refuted answers of one accountant, in the newest version that has it, that have one reason;
    the first is the furthest from the attack."""

    accountant: str
    meant_as: str
    version: str
    erratum: str
    reason: str
    answers: list[dict[Hashable, Any]]
    code: str
    """Asks the accountant for the first answer."""
    command: str
    """Asks for our bounds on it, with a certificate."""


@dataclass(frozen=True)
class Example:
    """One answer that is not refuted, with the code that asks for it and the command for our bounds
    on it."""

    answer: dict[Hashable, Any]
    code: str
    command: str


@dataclass(frozen=True)
class PackagePart:
    """The results of one package: its counts by accountant and version, and refuted answers."""

    name: str
    package: Package
    rows: list[dict[str, Any]]
    refuted: list[Refuted]
    older: list[dict[Hashable, Any]]
    """Refuted answers of older versions where the newest version's answer is not refuted."""
    example: Example | None
    """An answer of the newest version, if there is one and none is refuted."""

    @property
    def title(self) -> str:
        return f"{self.package.title}: what its answers are worth"

    @property
    def path(self) -> str:
        """The file that shows how the package is asked."""
        return f"src/dpsub/papers/practice/packages/{self.name}.py"


def parts(cells: LookUp) -> list[PackagePart]:
    """Return the results of each package, for a page of its own."""
    judged = _answers(cells, "packages", accountant="*", version="*")
    judged = judged.assign(ratio=judged["claimed"] / judged["attained"])
    return [_part(name, package, judged) for name, package in packages().items()]


def questions(cells: LookUp) -> int:
    """Return the number of questions that the packages were asked."""
    judged = _answers(cells, "packages", accountant="*", version="*")
    return len(judged[[*SETTING, *SIZES]].drop_duplicates())


def refuted_packages(cells: LookUp) -> list[str]:
    """Return the accountants with a refuted answer in some version, but those that are refuted in
    one of two readings, which are ambiguous."""
    judged = _answers(cells, "packages", accountant="*", version="*")
    names = judged[judged["verdict"] == "refuted"]["accountant"].unique()
    return [name for name in names if says()[name] != ONE_READING]


def understated(cells: LookUp, accountant: str) -> dict[str, float]:
    """Return the number of refuted answers of an accountant, and the least and the largest ratio of
    the epsilon that an attack attains to such an answer."""
    judged = _answers(cells, "packages", accountant=accountant, version="*")
    refuted = judged[judged["verdict"] == "refuted"]
    factor = refuted["attained"] / refuted["claimed"]
    return {"answers": len(refuted), "least": factor.min(), "most": factor.max()}


def _part(name: str, package: Package, judged: pd.DataFrame) -> PackagePart:
    rows, refuted, older = [], [], []
    for accountant in package.accountants:
        own = judged[judged["accountant"] == accountant.name]
        versions = package.versions_of(accountant)
        for version in versions:
            of_version = own[own["version"] == f"v{version}"]
            if not of_version.empty:
                named = {"name": accountant.name, "version": version, "meant_as": accountant.answer}
                rows.append({**named, **_counted_verdicts(of_version)})
        # Answers of the version that is named first stand for the others, whose counts are above.
        newest = own[(own["version"] == f"v{versions[0]}") & (own["verdict"] == "refuted")]
        for erratum, group in newest.groupby("erratum"):
            refuted.append(_refuted(package, accountant, str(erratum), group))
        older += _older(versions, own)
    example = None if refuted else _example(package, judged)
    return PackagePart(name, package, rows, refuted, older, example)


def _older(versions: Sequence[str], own: pd.DataFrame) -> list[dict[Hashable, Any]]:
    """Return the refuted answers of older versions of an accountant that a later one mends, with
    that version and its answer."""
    keys = [name for name in (*SETTING, *SIZES) if name in own]
    found = []
    for _, answers in own.groupby(keys, dropna=False, sort=False):
        later: dict[Hashable, Any] | None = None
        for version in versions:
            for row in answers[answers["version"] == f"v{version}"].to_dict("records"):
                if row["verdict"] != "refuted":
                    later = {"since": version, "mended": row["claimed"]}
                elif later:
                    release = release_in_words(row)
                    found.append({**row, **later, "of": version, "release": release})
    return found


def _example(package: Package, judged: pd.DataFrame) -> Example | None:
    """Return the first answer of the newest version, or None if this run has none, as at smoke
    size."""
    accountant = package.accountants[0]
    newest = judged["version"] == f"v{package.versions_of(accountant)[0]}"
    answers = judged[newest & (judged["accountant"] == accountant.name)].to_dict("records")
    if not answers:
        return None
    answer = answers[0]
    question = question_of(answer)
    answer["release"] = release_in_words(answer)
    return Example(answer, code_of(accountant, question), command_of(question))


def _refuted(
    package: Package, accountant: Accountant, erratum: str, group: pd.DataFrame
) -> Refuted:
    # The worst first, in whichever direction the answer is wrong.
    gap = (group["ratio"] - 1).abs().sort_values(ascending=False)
    group = group.loc[gap.index]
    group = group.assign(release=[release_in_words(row) for row in group.to_dict("records")])
    answers = group.to_dict("records")
    question = question_of(answers[0])
    return Refuted(
        accountant=accountant.name,
        meant_as=accountant.answer,
        version=package.versions_of(accountant)[0],
        erratum=erratum,
        reason=package.reasons[erratum],
        answers=answers,
        code=code_of(accountant, question),
        command=command_of(question),
    )


def code_of(accountant: Accountant, question: AccountingQuestion) -> str:
    """Return the Python that asks an accountant, as the formatter wants it."""
    way = accountant.way(question)
    assert way is not None
    imports, _, rest = asked(way.code, question).rpartition("import ")
    last, _, rest = rest.partition("\n")
    return f"{imports}import {last}\n\n{rest}"


def question_of(row: Mapping[Hashable, Any]) -> AccountingQuestion:
    """Return the question of a row of recorded answers."""
    words = {name: row[name] for name in ("mechanism", "sampler", "adjacency")}
    whole = {name: int(row.get(name) or 0) for name in ("n", "m", "steps")}
    real = {name: float(row.get(name) or 0) for name in ("rate", "noise_multiplier", "delta")}
    return AccountingQuestion.model_validate({**words, **whole, **real})


def command_of(question: AccountingQuestion) -> str:
    """Return the command line that asks for our bounds, with a certificate."""
    options = {
        "n": question.n,
        "max-batch" if question.sampler == "truncated_poisson" else "m": question.m,
        "rate": question.rate,
        "t": question.steps if question.sampler == "random_allocation" else 0,
        "noise-multiplier": question.noise_multiplier,
        "steps": question.steps,
        "delta": question.delta,
    }
    words = [f"--{name} {value!r}" for name, value in options.items() if value]
    if question.mechanism != "gaussian":
        words.append(f"--mechanism {question.mechanism}")
    # close enough to tell every refuted answer from the truth, and quick to verify
    fine = "--quick --width 0.0005 --effort none"
    words.append(f"--adjacency {question.adjacency} {fine} --certificate c.json")
    return f"dpsub account {question.sampler} {' '.join(words)}"


def refuted_answers(cells: LookUp, accountant: str) -> list[dict[Hashable, Any]]:
    """Return the refuted answers of an accountant, the furthest from the attack first."""
    judged = answers(cells, accountant)
    refuted = judged[judged["verdict"] == "refuted"]
    if refuted.empty:
        raise MissingRecordsError(f"this run refutes no answer of {accountant}")
    refuted = refuted.assign(
        release=[release_in_words(row) for row in refuted.to_dict("records")],
        ratio=refuted["attained"] / refuted["claimed"],
    )
    return refuted.sort_values("ratio", ascending=False).to_dict("records")


def release_in_words(setting: Mapping[Hashable, Any]) -> str:
    """Return the releases of a setting in words, such as "128 samples of 16 of 1,000 records"."""
    steps = int(setting["steps"])
    if setting["sampler"] == "random_allocation":
        words = f"one of {steps:,} steps for each record"
    elif setting["sampler"] == "wor":
        drawn = f"of {int(setting['m']):,} of {int(setting['n']):,} records without replacement"
        words = f"{_counted(steps, 'sample')} {drawn}"
    elif setting["sampler"] == "shuffle":
        n, m = int(setting["n"]), int(setting["m"])
        words = f"{_counted(steps * m // n, 'epoch')} of {n:,} records in shuffled batches of {m:,}"
    elif setting["rate"] == "1":
        words = f"{_counted(steps, 'sum')} of all records"
    else:
        words = f"{_counted(steps, 'Poisson sample')} at rate {setting['rate']}"
        if setting["sampler"] == "truncated_poisson":
            words += f", cut at {setting['m']} records"
    return words + (", Laplace noise" if setting["mechanism"] == "laplace" else "")


def _counted(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number:,} {noun}s"


def upper_bounds(cells: LookUp) -> dict[str, Any]:
    """Return the accountants whose upper bounds no attack exceeds, and the answer that one exceeds
    most, if any."""
    judged = answers(cells)
    # An estimate is not called an upper bound by its author: it is not named among those that fail
    # as one.
    bounds = judged[judged["accountant"].map(ACCOUNTANTS) == UPPER]
    refuted = bounds[bounds["verdict"] == "refuted"]
    names = set(refuted["accountant"])
    exceeded = None
    if not refuted.empty:
        # The attack over the answer: by how much at least the answer is too small.
        factor = refuted["attained"] / refuted["claimed"]
        exceeded = refuted.loc[factor.sort_values().index[-1]]
    return {
        "good": [name for name in bounds["accountant"].unique() if name not in names],
        "exceeded": exceeded,
    }


def brackets(cells: LookUp) -> pd.DataFrame:
    """Return the settings of shuffled batches with the epsilons `poisson`, `attained` and
    `proved`."""
    any_batches = dict.fromkeys(BATCHES, "*")
    poisson, lower, upper = (
        cells.rows("shuffling", f"epsilon_{name}", **any_batches)
        for name in ("poisson", "lower", "upper")
    )
    if poisson.empty or "rigorous" not in poisson:
        raise MissingRecordsError("this run has no shuffled batches")
    settings = poisson[[*BATCHES, "rigorous"]].rename(columns={"rigorous": "poisson"})
    settings = with_end(settings, lower, BATCHES, "attained")
    settings = with_end(settings, upper, BATCHES, "proved").dropna()
    if settings.empty:
        raise MissingRecordsError("this run has no shuffled batches with both bounds")
    return settings.assign(
        noise=pd.to_numeric(settings["noise_multiplier"]),
        # Above 1 Poisson's epsilon is refuted for shuffled batches.
        factor=settings["attained"] / settings["poisson"],
    )


def over_poisson(cells: LookUp) -> dict[str, Any]:
    """Return the number of settings in which an attack on shuffled batches exceeds Poisson's
    epsilon, the largest excess, and for each adjacency, batch size and number of epochs the noise
    at which the excess is largest."""
    settings = brackets(cells)
    furthest = settings.groupby(["adjacency", "m", "epochs"], sort=False)["factor"].idxmax()
    return {
        "exceeding": int((settings["factor"] > 1).sum()),
        "settings": len(settings),
        "most": settings["factor"].max(),
        "rows": settings.loc[furthest].to_dict("records"),
    }


def gap(cells: LookUp) -> list[dict[str, Any]]:
    """Return, for the smallest and the largest noise under each adjacency, the least and the
    largest ratio of the proof to the attack, and of the attack to Poisson's epsilon."""
    settings = brackets(cells)
    settings = settings.assign(apart=settings["proved"] / settings["attained"])
    found = []
    for noise in (settings["noise"].min(), settings["noise"].max()):
        at_noise = settings[settings["noise"] == noise]
        for adjacency, own in at_noise.groupby("adjacency", sort=False):
            found.append(
                {
                    "adjacency": adjacency,
                    "noise_multiplier": noise,
                    "apart": (own["apart"].min(), own["apart"].max()),
                    "over_poisson": (own["factor"].min(), own["factor"].max()),
                }
            )
    return found


def poisson_and_attained(cells: LookUp) -> dict[str, tuple[float, float]]:
    """Return Poisson's epsilon and that of an attack, for the noise at which they are furthest
    apart, by batch size and epochs."""
    settings = brackets(cells)
    # One entry for each size: the noise at which the practice understates most.
    furthest = settings.loc[settings.groupby(["m", "epochs"])["factor"].idxmax()]
    furthest = furthest.sort_values("factor", ascending=False)
    return {
        f"m = {setting['m']}, {_counted(int(setting['epochs']), 'epoch')}": (
            float(setting["poisson"]),
            float(setting["attained"]),
        )
        for _, setting in furthest.iterrows()
    }


def most_over_poisson(cells: LookUp) -> float:
    """Return the largest ratio of the epsilon that an attack on shuffled batches attains to
    Poisson's epsilon."""
    return float(brackets(cells)["factor"].max())


def least_over_poisson(cells: LookUp) -> float:
    """Return the smallest of these ratios."""
    return float(brackets(cells)["factor"].min())


def least_noise(cells: LookUp) -> float:
    """Return the smallest noise multiplier of the settings of shuffled batches."""
    return float(brackets(cells)["noise"].min())


def most_noise(cells: LookUp) -> float:
    return float(brackets(cells)["noise"].max())


def most_over_an_answer(cells: LookUp) -> float:
    """Return the largest ratio of the epsilon that an attack attains to a refuted answer."""
    judged = answers(cells, "dp-accounting RDP")
    return float((judged["attained"] / judged["claimed"]).max())
