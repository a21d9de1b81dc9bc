"""Answers in words: a title and a few lines each, the same in Python, in a notebook and on the
command line.

Numbers are rounded conservatively, so that a copied value stays valid. The command line has
longer texts, with conditions and data sets (`dpsub ... --explain`).
"""

from __future__ import annotations

import html
import math
import re
import textwrap
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dpsub.relations import Relation

if TYPE_CHECKING:
    from dpsub.accounting.release import Group, Release

Line = tuple[str, "str | Sequence[str]"]
"""A name and its value; several values stand below each other."""
_DIGITS = 6
_COLUMNS, _STATEMENT_COLUMNS = 116, 100
_KINDS = {
    "exact": "exact up to this width",
    "bounds": "bounds: the upper one is proved, an attack attains the lower one",
    "lower": "lower: an attack attains the lower bound, no upper bound was computed",
    "paper": "paper: the value of the papers' pair",
}
_NONE_KNOWN = "no attack is known"
_OF_ANOTHER = "attacks on these releases say nothing of the training, which reveals at most as much"
_EMPTY = "an empty guarantee: every mechanism satisfies it"
_RELATIONS = {
    Relation.ADD_REMOVE: "add_remove ({} added or removed)",
    Relation.SUBSTITUTE: "substitute ({} replaced)",
    Relation.ZERO_OUT: "zero_out ({} replaced by 0)",
}
_MOST_ENTRIES = 4  # entries of a ledger, all of which are shown
_MOST_ROWS = 20  # values, all of which are shown
_SHOWN_RELEASES = 2  # releases of a ledger in its title


class AccountLike(Protocol):
    """The parts of an account that its text shows."""

    @property
    def lower(self) -> Any: ...
    @property
    def upper(self) -> Any: ...
    @property
    def kind(self) -> str: ...
    @property
    def quantity(self) -> str: ...
    @property
    def adjacency(self) -> Relation: ...
    @property
    def lower_pair(self) -> str: ...
    @property
    def width_met(self) -> bool: ...
    @property
    def width_reason(self) -> str: ...
    @property
    def relative_width(self) -> Any: ...
    @property
    def asked(self) -> Asked | None: ...
    @property
    def theorem(self) -> str: ...
    @property
    def lower_theorem(self) -> str: ...
    @property
    def attack_known(self) -> bool: ...


@dataclass(frozen=True)
class Asked:
    """The question of an answer: the releases, and the epsilons or deltas at which it was asked.

    `training` is what was trained, in words, where that ends within the last epoch of them.
    """

    releases: tuple[Release, ...]
    values: tuple[float, ...]
    training: str = ""

    @property
    def is_one_sided(self) -> bool:
        """Whether any releases stand for others, which tell at most as much."""
        return any(release.one_sided for release in self.releases)


class Text(NamedTuple):
    """A title, and named lines below it."""

    title: str
    lines: Sequence[Line] = ()

    def __str__(self) -> str:
        width = max((len(name) for name, _ in self.lines), default=0)
        rows = [self.title]
        for name, value in self.lines:
            label = name
            for item in [value] if isinstance(value, str) else value:
                # a label stands once; further rows of its value are indented below
                room = _COLUMNS - 2 - width
                for row in textwrap.wrap(item, room, break_on_hyphens=False) or [""]:
                    rows.append(f"  {label:<{width}}  {row}".rstrip())
                    label = ""
        return "\n".join(rows)

    def html(self) -> str:
        """The text as a table of HTML."""
        rows = []
        for name, value in self.lines:
            items = [value] if isinstance(value, str) else value
            text = "<br>".join(map(html.escape, items))
            head = f'<th style="text-align: left">{html.escape(name)}</th>'
            rows.append(f'<tr>{head}<td style="text-align: left">{text}</td></tr>')
        return f"<p>{html.escape(self.title)}</p>\n<table>\n{chr(10).join(rows)}\n</table>"


@dataclass(frozen=True)
class Statement:
    """The text to publish with a guarantee.

    Attributes
    ----------
    sentence : str
        The guarantee, for a text.
    fields : dict
        The same as a table, ready for JSON or YAML: numbers that are guaranteed are rounded up,
        those of attacks down.
    """

    sentence: str
    fields: dict[str, Any]

    def __str__(self) -> str:
        rows = [f"| {name} | {value} |" for name, value in self.fields.items()]
        table = ["| field | value |", "|---|---|", *rows]
        return "\n".join([textwrap.fill(self.sentence, _STATEMENT_COLUMNS), "", *table])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in self.fields.items()
        )
        return f"<p>{html.escape(self.sentence)}</p><table>{rows}</table>"


class ShortText:
    """Mixin of answers with a short text for `print` and for notebooks."""

    @abstractmethod
    def text(self) -> Text:
        """The answer in a few words."""

    def __str__(self) -> str:
        return str(self.text())

    def _repr_html_(self) -> str:
        return self.text().html()


class _HasAccount(Protocol):
    @property
    def account(self) -> AccountLike: ...


class OnAccount:
    """Mixin of answers that have an `account`, whose theorems and width they repeat."""

    @property
    def theorem(self: _HasAccount) -> str:
        """The theorem that proves the upper bound, with its page of docs/proofs."""
        return self.account.theorem

    @property
    def lower_theorem(self: _HasAccount) -> str:
        """Page of the attack behind the lower bound."""
        return self.account.lower_theorem

    @property
    def relative_width(self: _HasAccount) -> Any:
        """(upper - lower) / upper of both bounds."""
        return self.account.relative_width

    @property
    def width_met(self: _HasAccount) -> bool:
        """Whether the bounds are as close as requested."""
        return self.account.width_met

    @property
    def width_reason(self: _HasAccount) -> str:
        """Why the bounds are not as close as requested (effort, numerics or theory), and what would
        help; empty if they are."""
        return self.account.width_reason


def up(value: float) -> str:
    """Round `value` up to a few digits: an upper bound stays one."""
    return _rounded(value, ROUND_CEILING)


def down(value: float) -> str:
    """Round `value` down to a few digits: a lower bound stays one."""
    return _rounded(value, ROUND_FLOOR)


def _rounded(value: float, rounding: str, digits: int = _DIGITS) -> str:
    if not math.isfinite(value):
        return near(value)
    # Decimal rounds to a side exactly, where scaling a float would round twice
    return near(float(Context(prec=digits, rounding=rounding).create_decimal(Decimal(value))))


def near(value: float) -> str:
    """Round `value` to a few digits."""
    return f"{value:.{_DIGITS}g}"


def percent(share: float) -> str:
    """Write a share in percent, rounded up to two digits."""
    if 0 < share < 1e-5:
        return "below 0.001 %"
    return f"{_rounded(100 * share, ROUND_CEILING, 2)} %"


def plural(count: int, noun: str) -> str:
    """Write the count with its noun."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def releases_text(releases: Sequence[Release]) -> str:
    """Name releases of several kinds, those of a long ledger counted."""
    if len(releases) > _SHOWN_RELEASES:
        steps = sum(release.steps for release in releases)
        return f"{len(releases)} entries with {steps} releases"
    return "; ".join(map(str, releases))


def account_text(account: AccountLike) -> Text:
    """Write an account, or several of them in one array."""
    return Text(account_title(account), account_lines(account))


def account_title(account: AccountLike) -> str:
    """Write the question, and first of all whether its answer guarantees nothing."""
    title = account.quantity
    if account.asked is not None:
        at = "delta" if account.quantity == "epsilon" else "epsilon"
        values = account.asked.values
        shown = f"{at} = {near(values[0])}" if len(values) == 1 else f"{len(values)} values of {at}"
        title += f" at {shown} of {releases_text(account.asked.releases)}"
    return marked(account, title)


def marked(account: AccountLike, title: str) -> str:
    """Begin a title with a warning where the answer is no guarantee, so that it survives a glance
    and a cut line."""
    if account.kind != "paper":
        return title
    return f"NOT A GUARANTEE: {title}, by the papers' pair"


def account_lines(account: AccountLike, *, warnings: Iterable[str] = ()) -> list[Line]:
    """Write the relation, both bounds, the theorem, and the warnings for the reader."""
    return [
        relation_line(account),
        *_ends(account),
        *grounds(account, [*account_warnings(account), *warnings]),
    ]


def relation_line(account: AccountLike) -> Line:
    """Write the relation, which comes first: numbers under different ones do not compare."""
    return "relation", relation_text(account)


def relation_first(lines: Iterable[Line]) -> list[Line]:
    """Put the line of the relation before all others."""
    return sorted(lines, key=lambda line: line[0] != "relation")


def grounds(account: AccountLike, notes: Sequence[str]) -> list[Line]:
    """Write the theorem, and the warnings for the reader."""
    lines = [("theorem", theorem_text(account)), ("note", "; ".join(notes))]
    return [(name, text) for name, text in lines if text]


def _ends(account: AccountLike) -> list[Line]:
    if isinstance(account.upper, float):
        return [(account.quantity, ends_text(account))]
    lowers, uppers = account.lower.ravel().tolist(), account.upper.ravel().tolist()
    values = account.asked.values if account.asked else [math.nan] * len(uppers)
    at = "delta" if account.quantity == "epsilon" else "epsilon"
    rows = [
        f"{interval(low, high)}  at {at} {near(value)}"
        for value, low, high in zip(values, lowers, uppers, strict=True)
    ]
    # the first, the last and the middle one stand for a curve
    if len(rows) > _MOST_ROWS:
        rows = [rows[0], rows[len(rows) // 2], rows[-1]]
    return [(account.quantity, rows), ("kind", kind_text(account))]


def ends_text(account: AccountLike) -> str:
    """Write both bounds of one value, their distance, and their kind."""
    return f"{interval(account.lower, account.upper)}; {kind_text(account)}"


def interval(lower: float, upper: float) -> str:
    """Write both bounds, rounded outwards, and their distance as a share of the upper one."""
    if not math.isfinite(upper):
        return f"at least {down(lower)}"
    if lower <= 0:
        return f"at most {up(upper)}"
    return f"{down(lower)} to {up(upper)}, width {percent((upper - lower) / upper)}"


def kind_text(account: AccountLike) -> str:
    """Write the kind of an account, and its meaning."""
    if account.kind == "upper":
        return f"upper: the upper bound is proved, {without_attack(account)}"
    if account.kind == "lower" and not _attains(account):
        return f"lower: no upper bound was computed, {without_attack(account)}"
    return _KINDS[account.kind]


def _attains(account: AccountLike) -> bool:
    lower = account.lower
    return lower > 0 if isinstance(lower, float) else bool((lower > 0).any())


def without_attack(account: AccountLike) -> str:
    """Say why there is no lower bound: none can be, none is known, or none was computed."""
    if not account.attack_known:
        is_one_sided = account.asked is not None and account.asked.is_one_sided
        return _OF_ANOTHER if is_one_sided else _NONE_KNOWN
    return "no attack that was computed attains more than 0"


def relation_text(account: AccountLike) -> str:
    """Name the relation, and the one that compares with what Opacus prints where it is another."""
    releases = () if account.asked is None else account.asked.releases
    text = relation_of(account.adjacency, releases)
    # what Opacus prints is about one record
    is_of_records = all(release.records_per_user is None for release in releases)
    of_one = _group_of(releases) == 1 and is_of_records
    if account.asked is None or account.kind == "paper" or not of_one:
        return text
    why = _instead_of(account.adjacency, account.asked.releases)
    return f"{text}{why}{compared_with_opacus(account.adjacency, account.asked.releases)}"


def compared_with_opacus(relation: Relation, releases: Sequence[Release]) -> str:
    """Say how the epsilon compares with that of Opacus, whose accountants compute add_remove of
    Poisson samples: that is zero_out of them, too, and under zero_out a record moves the sum of any
    samples by as much."""
    from dpsub.accounting.schemes import stated_relation

    if relation is Relation.ZERO_OUT:
        return ", comparable with Opacus' epsilon"
    stated = {stated_relation(release) for release in releases}
    if relation is Relation.ADD_REMOVE and stated <= {relation}:
        return ", as in Opacus"
    return "; compare Opacus' epsilon with that under zero_out"


def _instead_of(relation: Relation, releases: Sequence[Release]) -> str:
    """Say that no theorem covers the relations before the one of an answer, where that is so."""
    from dpsub.accounting.schemes import DEFAULTS, default_relation

    if not releases or relation is DEFAULTS[0] or default_relation(releases) is not relation:
        return ""
    before = DEFAULTS[: DEFAULTS.index(relation)]
    return f", as no theorem covers {' or '.join(before)}"


def _group_of(releases: Sequence[Release]) -> Group:
    return max((release.group for release in releases), key=str, default=1)


def relation_of(relation: Relation, releases: Sequence[Release]) -> str:
    """Name the relation of releases, and the unit that changes under it."""
    users = user_of(releases)
    if users:
        return _RELATIONS[relation].format(users)
    return relation_of_group(relation, _group_of(releases))


def user_of(releases: Sequence[Release]) -> str:
    """Describe the user in whom neighbouring data sets differ; empty where it is a record."""
    most = max((release.records_per_user or 0 for release in releases), default=0)
    return f"one user with at most {plural(most, 'record')} in a step" if most else ""


def relation_of_group(relation: Relation, group: Group) -> str:
    """Name the relation, and the unit that changes under it."""
    if isinstance(group, int):
        unit = "one record" if group == 1 else f"up to {group} records of one unit"
        return _RELATIONS[relation].format(unit)
    return f"{relation} (up to {group[0]} records of one unit added and {group[1]} removed)"


class _Grounded(Protocol):
    """An answer that names its theorems."""

    @property
    def theorem(self) -> str: ...
    @property
    def lower_theorem(self) -> str: ...


def theorem_text(found: _Grounded) -> str:
    """Name the proof of the upper bound, and the page of the attack if that is another one."""
    places = dict.fromkeys([found.theorem, found.lower_theorem])
    return "; ".join(filter(None, places))


def account_warnings(account: AccountLike) -> list[str]:
    """Return the notes that a reader of the numbers must know."""
    notes = []
    uppers = [account.upper] if isinstance(account.upper, float) else account.upper.ravel().tolist()
    # delta = 1 and infinite epsilon are met by releasing the data
    worst = max(uppers)
    if math.isinf(worst):
        notes.append("no finite upper bound was computed")
    elif account.quantity == "delta" and worst >= 1:
        notes.append(_EMPTY if account.width_met else "no upper bound below 1 was computed")
    if account.asked is not None and account.quantity == "epsilon":
        notes += delta_of_one_record(max(account.asked.values), account.asked.releases)
    if not account.width_met:
        notes.append(wider_text(account.width_reason))
    return notes


def delta_of_one_record(delta: float, releases: Sequence[Release]) -> list[str]:
    """Remark on a delta of at least 1/n, for which a guarantee may say nothing of one record."""
    n = max((release.n for release in releases if release.n is not None), default=None)
    if n is None or n == 1 or not delta >= 1 / n:
        return []
    return [f"delta is at least 1/n = {near(1 / n)}: publishing one record at random satisfies it"]


def wider_text(reason: str) -> str:
    """Say that bounds are farther apart than requested, and why."""
    why = reason_text(reason) or "the refinement stopped early; both bounds are valid"
    return f"wider than requested: {why}"


def reason_text(reason: str) -> str:
    """Return a `width_reason` without the words before its colons, which programs read."""
    return re.sub(r"(^|; )[a-z]+: ", r"\1", reason)


def check_text(verdict: str, claimed: float, account: AccountLike) -> Text:
    """Write a claim and its verdict."""
    title = f"{verdict}: {account.quantity} <= {near(claimed)}"
    if account.asked is not None:
        at = "delta" if account.quantity == "epsilon" else "epsilon"
        source = releases_text(account.asked.releases)
        title += f" at {at} = {near(account.asked.values[0])} of {source}"
    return Text(title, account_lines(account))


def noise_text(noise_multiplier: float, refuted: float | None) -> str:
    """Write a proved noise multiplier, and the one that an attack refutes."""
    attacked = "none refuted" if refuted is None else f"{down(refuted)} and less refuted"
    return f"{up(noise_multiplier)} proved, {attacked}"


def calibration_text(noise_multiplier: float, refuted: float | None, account: AccountLike) -> Text:
    """Write a noise multiplier, and the account of the releases that have it."""
    lines: list[Line] = [("noise multiplier", noise_text(noise_multiplier, refuted))]
    return Text(account_title(account), relation_first([*lines, *account_lines(account)]))


class CurveSummary(NamedTuple):
    """The text of a privacy curve next to its deltas: pairs of bounds."""

    advantage: tuple[float, float]
    mu: tuple[float, float]
    false_positives: Sequence[float]
    success: tuple[Sequence[float], Sequence[float]]
    """Both bounds, of membership inference at these false positive rates."""


def curve_lines(
    account: AccountLike, epsilons: Sequence[float], measures: CurveSummary
) -> list[Line]:
    """Write delta at the first, the last and the middle epsilon, and its consequences for tests."""
    # 0 is the advantage, which has a line of its own
    inner = list(epsilons[1:]) or list(epsilons)
    shown = list(dict.fromkeys([inner[len(inner) // 4], inner[len(inner) // 2], inner[-1]]))
    places = [list(epsilons).index(value) for value in shown]
    deltas = [f"{up(float(account.upper[place]))} at {near(epsilons[place])}" for place in places]
    tests = f"advantage at most {up(measures.advantage[1])}, mu at most {up(measures.mu[1])}"
    notes = account_warnings(account) if account.upper[-1] >= 1 or not account.width_met else []
    kind = kind_text(account).partition(":")[0].removesuffix(" up to this width")
    return [
        relation_line(account),
        ("delta", f"at most {', '.join(deltas)} (epsilon); kind {kind}"),
        ("tests", tests),
        ("membership", membership_text(measures.false_positives, measures.success)),
        *grounds(account, notes),
    ]


def membership_text(
    false_positives: Sequence[float], success: tuple[Sequence[float], Sequence[float]]
) -> str:
    """Write both bounds on the largest success of membership inference at these false positive
    rates."""
    rates = ", ".join(near(100 * rate) for rate in false_positives)
    low, high = _percents(success)
    return f"at most {high} % true at {rates} % false positives; attack {low} %"


def guesses_text(priors: Sequence[float], success: tuple[Sequence[float], Sequence[float]]) -> str:
    """Write both bounds on the largest success of guesses with these probabilities without the
    releases."""
    known = ", ".join(near(100 * prior) for prior in priors)
    low, high = _percents(success)
    return f"at most {high} % right where {known} % are without the releases; attack {low} %"


def _percents(success: tuple[Sequence[float], Sequence[float]]) -> tuple[str, str]:
    """Write lower and upper bounds on shares in percent."""
    low, high = (
        ", ".join(_rounded(100 * share, side, 3) for share in shares)
        for side, shares in zip((ROUND_FLOOR, ROUND_CEILING), success, strict=True)
    )
    return low, high


def curve_title(account: AccountLike) -> str:
    """Write the title of the curve of these releases."""
    if account.asked is None:
        return "the privacy curve"
    return f"the privacy curve of {releases_text(account.asked.releases)}"


def ledger_text(
    releases: Sequence[Release], names: Sequence[str | None], adjacency: Relation | None
) -> Text:
    """Write the entries of a ledger: all, or the first and the last ones."""
    steps = sum(release.steps for release in releases)
    count = len(releases)
    entries = "entry" if count == 1 else "entries"
    title = f"a ledger of {count} {entries} with {plural(steps, 'release')}"
    places = range(count) if count <= _MOST_ENTRIES else [0, 1, count - 1]
    lines: list[Line] = []
    for place in places:
        name = names[place]
        called = "" if name is None else f"{name}: "
        lines.append((f"entry {place + 1}", f"{called}{releases[place]}"))
    if adjacency is not None:
        lines.append(("relation", relation_of(adjacency, releases)))
    return Text(title, lines)
