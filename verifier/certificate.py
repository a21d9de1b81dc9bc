"""Reads a certificate (docs/certificates.md), proves each of its ends again, and says what came of
it."""

import json
from dataclasses import dataclass

import allocation
import cells
import events
import groups
import moments
import references
import shuffling
import step_sums
import theorems
import zeroed
from balls import NotCovered, Refuted, set_precision
from flint import arb
from game import prove_game
from law import Law, charge, composed_profile, read_law
from policy import filler_flip
from theorems import Case, Release, Shared, read_release

# What can be proved again: add a theorem or a statistic here.
THEOREMS = (
    theorems.THEOREMS
    | allocation.THEOREMS
    | moments.THEOREMS
    | references.THEOREMS
    | groups.THEOREMS
    | shuffling.THEOREMS
    | zeroed.THEOREMS
)
STATISTICS = {
    "sum": events.statistic_sum,
    "largest step": cells.largest_step,
    "all steps": allocation.all_steps,
    "step functions": step_sums.step_functions,
}

VERSION = 1
ADJACENCIES = ("add_remove", "substitute", "zero_out")
VERIFIED, REFUTED, NO_CERTIFICATE, NOT_COVERED = 0, 1, 2, 3


@dataclass(frozen=True)
class Question:
    """What was asked, and at which epsilon the claimed end has to meet which delta."""

    releases: list[Release]
    adjacency: str
    epsilon: arb
    delta: arb

    def cut(self) -> arb:
        """Masses that may be lost in a law without being seen in the nine digits of the claim."""
        most = max(release.steps for release in self.releases)
        return self.delta * arb(10) ** -15 / (4 * most)


def verify(path: str) -> tuple[list[str], int]:
    """The lines to print, and the exit status."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        return [f"{path} is no certificate: {error}"], NO_CERTIFICATE
    if not isinstance(data, dict) or data.get("dpsub_certificate") != VERSION:
        return [f"{path} is no certificate of version {VERSION}"], NO_CERTIFICATE
    lines, refuted, unknown = [], [], []
    for end, prove in (("upper", prove_upper), ("lower", prove_lower)):
        try:
            claim = data["claim"][end]
            if claim is None:
                lines.append(f"{end}: nothing claimed")
                continue
            lines.append(f"{end} {claim!r}: verified ({prove(data, question_of(data, claim))})")
        except Refuted as error:
            refuted.append(f"{end} end, {error}")
            lines.append(f"{end} {data['claim'][end]!r}: refuted: {error}")
        except NotCovered as error:
            unknown.append(str(error))
            lines.append(f"{end} {data['claim'][end]!r}: not covered: {error}")
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            return [
                f"{path} is no certificate: {type(error).__name__} {error} in its {end} end"
            ], NO_CERTIFICATE
    if refuted:
        return [*lines, f"refuted: {'; '.join(refuted)}"], REFUTED
    if unknown:
        return [*lines, f"not covered: {'; '.join(unknown)}"], NOT_COVERED
    return [*lines, "verified"], VERIFIED


def question_of(data: dict, claim: float) -> Question:
    """The question of one end, its claim put in the place of what was asked for."""
    question = data["question"]
    if question["adjacency"] not in ADJACENCIES:
        raise Refuted(f"question: no adjacency {question['adjacency']!r}")
    if question["quantity"] == "epsilon":
        epsilon, delta = claim, question["given"]["delta"]
    elif question["quantity"] == "delta":
        epsilon, delta = question["given"]["epsilon"], claim
    else:
        raise Refuted(f"question: no quantity {question['quantity']!r}")
    if not (0 <= epsilon < float("inf") and 0 <= delta <= 1):
        raise Refuted(f"claim: epsilon {epsilon!r} and delta {delta!r} are no such numbers")
    set_precision(float(delta))
    releases = [read_release(release) for release in question["releases"]]
    units = {release.group for release in releases}
    if len(units) != 1:
        raise Refuted("question: all releases need one unit of privacy, one group")
    if question["adjacency"] != "add_remove" and isinstance(units.pop(), tuple):
        raise Refuted("question: records are added and others removed under add_remove alone")
    return Question(releases, question["adjacency"], arb(epsilon), arb(delta))


def prove_upper(data: dict, question: Question) -> str:
    """Domination, composition and claim, for both orders of the neighbours."""
    upper = data["upper"]
    if upper is None:
        raise Refuted("nothing is given that proves it")
    if "game" in upper:
        return prove_game(question, upper["game"])
    sides = [upper[direction] for direction in ("forward", "backward")]
    names = [part["theorem"] for parts in sides if parts for part in parts]
    unknown = sorted({name for name in names if name not in THEOREMS})
    if unknown:
        raise NotCovered(f"theorem {', '.join(unknown)}")
    if upper["backward"] is None and not all(
        THEOREMS[name].symmetric(question.adjacency) for name in names
    ):
        raise Refuted(f"backward: {question.adjacency} needs a bound of this order, too")
    notes = []
    shared = Shared(upper.get("blocks", []))
    for direction, parts in zip(("forward", "backward"), sides, strict=True):
        if parts is None and direction == "backward":
            continue
        covered(question, parts, direction, shared)
        delta, note = composed(question, parts, direction, upper=True, shared=shared)
        if not delta <= question.delta:
            raise Refuted(
                f"{direction}: at epsilon {shown(question.epsilon)} the composed profile is "
                f"{shown(delta)}, above {shown(question.delta)}"
            )
        notes.append(f"{direction}: {note}" if upper["backward"] else note)
    release = question.releases[0]
    places = sorted(
        {f"Theorem {name}, docs/accounting.md {section_of(name, release)}" for name in names}
    )
    return "; ".join([*places, *notes])


def section_of(name: str, release: Release) -> str:
    theorem = THEOREMS[name]
    return (
        theorem.laplace_section if release.laplace and theorem.laplace_section else theorem.section
    )


def prove_lower(data: dict, question: Question) -> str:
    """The same with the inequalities reversed, for one order of explicit neighbours."""
    lower = data["lower"]
    if lower is None:
        if data["claim"]["lower"] == 0:
            return "nothing to prove"
        raise Refuted("nothing is given that proves it")
    if "parts" not in lower:
        delta, note = filler_flip(question, lower)
    else:
        parts, direction = lower["parts"], lower["direction"]
        if direction not in ("forward", "backward"):
            raise Refuted(f"no direction {direction!r}")
        unknown = sorted(
            {part["statistic"] for part in parts if part["statistic"] not in STATISTICS}
        )
        if unknown:
            raise NotCovered(f"statistic {', '.join(unknown)}")
        covered(question, parts, direction, Shared())
        delta, note = composed(question, parts, direction, upper=False, shared=Shared())
    # Above delta at the claimed epsilon, so that delta is not met at any smaller one either.
    if not (
        delta > question.delta
        or (data["question"]["quantity"] == "delta" and delta >= question.delta)
    ):
        raise Refuted(
            f"at epsilon {shown(question.epsilon)} the attack attains {shown(delta)}, "
            f"not {shown(question.delta)}"
        )
    return note


def covered(question: Question, parts: list[dict], direction: str, shared: Shared) -> None:
    """Every release is composed exactly as often as it happens."""
    for place, release in enumerate(question.releases):
        mine = [part for part in parts if part["release"] == place]
        kinds = {THEOREMS[part["theorem"]].rounds for part in mine if "theorem" in part}
        if len(kinds) > 1:
            raise Refuted(f"{direction}: release {place} is cut into parts by several theorems")
        rounds = kinds.pop() if kinds else None
        if rounds is not None:
            rounds(release, mine, shared)
        elif not all(type(part["times"]) is int and part["times"] > 0 for part in mine):
            raise Refuted(f"{direction}: times must be whole numbers above 0")
        elif sum(part["times"] for part in mine) != release.rounds:
            raise Refuted(
                f"{direction}: release {place} happens {release.rounds} times, not as "
                "often as its parts"
            )
    if any(part["release"] not in range(len(question.releases)) for part in parts):
        raise Refuted(f"{direction}: a part is of no release of the question")


def composed(
    question: Question, parts: list[dict], direction: str, upper: bool, shared: Shared
) -> tuple[arb, str]:
    """A bound of delta at the question's epsilon, and what it took: kinks and shortfall."""
    laws: list[tuple[Law, int]] = []
    shortfalls = []
    kinds = THEOREMS if upper else STATISTICS
    for place, part in enumerate(parts):
        law = read_law(part["law"], f"{direction}, part {place}")
        release = question.releases[part["release"]]
        case = Case(release, question.adjacency, direction, part, law, question.cut(), shared)
        name = part["theorem" if upper else "statistic"]
        kind = kinds[name]
        if release.group != 1 and upper and not kind.groups:
            raise Refuted(f"{direction}: theorem {name} is about one record, not about a group")
        if release.group != 1 and not upper and name != "sum":
            raise NotCovered(f"statistic {name} of a group")
        missing = kind.shortfall(case) if upper else kind(case)
        laws.append((law, part["times"]))
        shortfalls.append((missing, law.total() if upper else arb(1), part["times"]))
    delta = composed_profile(laws, question.epsilon, question.cut(), upper)
    charged = charge(shortfalls)
    delta = delta + charged if upper else delta - charged
    orders = sum(len(law.masses) for law, _ in laws)
    word = "orders" if upper else "points"
    most = max((missing for missing, _, _ in shortfalls), key=float)
    names = sorted({part["statistic"] for part in parts}) if not upper else []
    note = f"{orders} {word}; shortfall {shown(most) if most > 0 else 0}"
    return delta, f"statistic {', '.join(names)}; {note}" if names else note


def shown(x: arb) -> str:
    return f"{float(x.mid()):.10g}"
