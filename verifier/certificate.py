"""Prove each bound of a certificate (docs/certificates.md) again, and report the outcome.

A false claim would have to get past one of these, in this order: the closed schema (`reading`), the
rules of a question (`question`), `check_composition` (laws are composed as often as the question
says), a theorem's or an attack's shortfall (the law is held against what the question's theorem
gives, or data sets attain), the composition in balls (`law`), and the last comparison, of
`prove_upper`, `prove_lower` or `prove_game`.
"""

from dataclasses import dataclass

import allocation
import cells
import events
import groups
import moments
import null_clones
import references
import separated
import shuffling
import step_sums
import theorems
import work
import zeroed
from balls import NotCovered, Refuted, Unreadable, set_precision
from expect import check_expected
from flint import arb
from game import prove_game
from law import Law, charge, composed_profile, read_law
from policy import filler_flip
from question import (
    Claim,
    Question,
    Release,
    claim_of,
    described,
    read_question,
    theorems_about,
)
from reading import Source, read_file
from theorems import Case, Shared

# What can be proved again: add a theorem or a statistic here, and in `reading` and `question`.
THEOREMS = (
    theorems.THEOREMS
    | allocation.THEOREMS
    | moments.THEOREMS
    | null_clones.THEOREMS
    | references.THEOREMS
    | groups.THEOREMS
    | separated.THEOREMS
    | shuffling.THEOREMS
    | zeroed.THEOREMS
)
STATISTICS = {
    "sum": events.statistic_sum,
    "sum of all steps": events.sum_of_all_steps,
    "largest step": cells.largest_step,
    "all steps": allocation.all_steps,
    "step functions": step_sums.step_functions,
}

VERIFIED, REFUTED, UNREADABLE, NOT_COVERED = 0, 1, 2, 3


@dataclass(frozen=True)
class Verdict:
    """Outcome of a file: the statement of the file, in lines; the result for each bound and for
    all, in lines; the exit status."""

    statement: list[str]
    lines: list[str]
    status: int


def verify(path: str, expected: str | None = None) -> tuple[list[str], int]:
    """Lines with the result for each bound and for all, and the exit status."""
    verdict = judged(path, expected)
    return verdict.lines, verdict.status


def judged(path: str, expected: str | None = None) -> Verdict:
    """Read and prove a file; no file makes it fail."""
    try:
        source = read_file(path)
    except Unreadable as error:
        return Verdict([], [f"not readable: {error}"], UNREADABLE)
    except NotCovered as error:
        return Verdict([], [f"not covered: {error}"], NOT_COVERED)
    except MemoryError:
        return Verdict([], ["not covered: too large for the memory of this machine"], NOT_COVERED)
    statement = [f"certificate: sha256 {source.digest}"]
    try:
        question = read_question(source.data["question"])
        statement += described(question)
        claim = source.data["claim"]
        if expected is not None:
            check_expected(expected, question, claim, source.digest)
        check_claims(claim)
    except Unreadable as error:
        return Verdict(statement, [f"not readable: {error}"], UNREADABLE)
    except Refuted as error:
        return Verdict(statement, [f"refuted: {error}"], REFUTED)
    except NotCovered as error:
        return Verdict(statement, [f"not covered: {error}"], NOT_COVERED)
    return Verdict(statement, *judged_ends(source, question))


def check_claims(claim: dict[str, float | None]) -> None:
    """Refuse claims that cannot be true, whatever their proofs are. Equal bounds may both hold."""
    lower, upper = claim["lower"], claim["upper"]
    if lower is not None and upper is not None and lower > upper:
        raise Refuted(f"the lower bound {lower!r} is claimed above the upper bound {upper!r}")


def judged_ends(source: Source, question: Question) -> tuple[list[str], int]:
    """Lines with the result for each bound, and the status: `verified` takes at least one bound
    that is claimed (the schema has seen to that), and a proof of each that is."""
    lines, refuted, unknown, proved = [], [], [], 0
    for end, prove in (("upper", prove_upper), ("lower", prove_lower)):
        value = source.data["claim"][end]
        if value is None:
            lines.append(f"{end}: nothing claimed")
            continue
        try:
            note = proved_again(source.data[end], claim_of_end(question, value), prove)
            lines.append(f"{end} {value!r}: verified ({note})")
            proved += 1
        except Refuted as error:
            refuted.append(f"{end} bound, {error}")
            lines.append(f"{end} {value!r}: refuted: {error}")
        except NotCovered as error:
            unknown.append(str(error))
            lines.append(f"{end} {value!r}: not covered: {error}")
    if refuted:
        return [*lines, f"refuted: {'; '.join(refuted)}"], REFUTED
    if unknown or not proved:
        return [*lines, f"not covered: {'; '.join(unknown)}"], NOT_COVERED
    return [*lines, "verified"], VERIFIED


def claim_of_end(question: Question, value: float) -> Claim:
    claim = claim_of(question, value)
    set_precision(float(claim.delta))
    work.begin()
    return claim


def proved_again(end: dict | NotCovered, claim: Claim, prove) -> str:
    """Note of a proof. What fails on the way proves nothing, and refutes nothing either."""
    if isinstance(end, NotCovered):
        raise end
    try:
        return prove(claim, end)
    except (Refuted, NotCovered):
        raise
    except MemoryError:
        raise NotCovered("too large for the memory of this machine") from None
    except RecursionError:
        raise NotCovered("too large: nested too deeply") from None
    except Exception as error:
        raise NotCovered(f"numbers out of range ({type(error).__name__}: {error})") from None


# --- Upper bounds
# -----------------------------------------------------------------------------------


def prove_upper(claim: Claim, upper: dict) -> str:
    """Domination, composition and claim, for both orders of the neighbours.

    A false upper bound would have to leave out an order of the neighbours that matters, a release
    or a round, or have laws below the theorem's bound that are not charged for it.
    """
    if "game" in upper:
        return prove_game(claim, upper["game"])
    # From the question, not from what the parts call themselves.
    if upper["backward"] is None and not claim.question.serves_both_orders:
        raise Refuted(f"backward: {claim.adjacency} needs a bound of this order, too")
    notes, places = [], set()
    shared = Shared(upper.get("blocks", []))
    for direction in ("forward", "backward"):
        parts = upper[direction]
        if parts is None:  # backward alone, where forward is one of both orders
            continue
        places |= check_upper_parts(claim, parts, direction)
        check_composition(claim, parts, direction, shared, upper=True)
        delta, note = composed(claim, parts, direction, upper=True, shared=shared)
        # An upper bound may be equal. What is no number is no smaller.
        if not delta <= claim.delta:
            raise Refuted(
                f"{direction}: at epsilon {shown(claim.epsilon)} the composed profile is "
                f"{shown(delta)}, above {shown(claim.delta)}"
            )
        notes.append(f"{direction}: {note}" if upper["backward"] else note)
    return "; ".join([*sorted(places), *notes])


def check_upper_parts(claim: Claim, parts: list[dict], direction: str) -> set[str]:
    """Return the theorems of the parts, with the pages that prove them. Each part's theorem has to
    be one about its release, and each release has one theorem."""
    places = set()
    theorem_of: dict[int, str] = {}
    for part in parts:
        release, name = release_of(claim, part, direction), part["theorem"]
        about = theorems_about(release, claim.adjacency)
        if name not in about:
            raise Refuted(
                f"{direction}: theorem {name} is not about this release, which needs theorem "
                f"{' or '.join(about)}"
            )
        if theorem_of.setdefault(part["release"], name) != name:
            raise Refuted(f"{direction}: release {part['release']} has parts of several theorems")
        # this program tells the page; the file's own word for it is for readers alone
        places.add(f"Theorem {name}, docs/proofs/{page_of(name, release)}.md")
    return places


def page_of(name: str, release: Release) -> str:
    theorem = THEOREMS[name]
    return theorem.laplace_page if release.laplace and theorem.laplace_page else theorem.page


# --- Lower bounds
# -----------------------------------------------------------------------------------


def prove_lower(claim: Claim, lower: dict) -> str:
    """Prove a lower bound: as an upper one with the inequalities reversed, for one order of
    explicit neighbours.

    A false lower bound would have to have laws above what the data sets attain that are not charged
    for it, data sets that are no neighbours, or more rounds than there are.
    """
    check_attacked(claim, lower)
    if "parts" not in lower:
        delta, note = filler_flip(claim, lower)
    else:
        parts, direction = lower["parts"], lower["direction"]
        check_composition(claim, parts, direction, Shared(), upper=False)
        delta, note = composed(claim, parts, direction, upper=False, shared=Shared())
    # An epsilon is only below the smallest one that meets delta if more than delta is attained at
    # it; of a delta, attaining it is enough. What is no number is no larger.
    is_attained = delta > claim.delta
    if claim.question.quantity == "delta":
        is_attained = delta >= claim.delta
    if not is_attained:
        raise Refuted(
            f"at epsilon {shown(claim.epsilon)} the attack attains {shown(delta)}, "
            f"not {shown(claim.delta)}"
        )
    return note


def check_attacked(claim: Claim, lower: dict) -> None:
    """Refuse an attack on something other than what is released.

    A false lower bound would be one on releases that stand for others which tell less, or on an
    epoch that keeps the record where the real one may drop it.
    """
    for part in lower.get("parts", [lower]):
        release = release_of(claim, part, "lower")
        if release.one_sided:
            raise Refuted("an attack on releases in the place of others is none on those")
        if release.name == "shuffle" and release.drops_last and release.n % release.sampler["m"]:
            raise NotCovered("attacks on shuffled epochs that drop records")


# --- Both -----------------------------------------------------------------------------------------


def release_of(claim: Claim, part: dict, direction: str) -> Release:
    if not part["release"] < len(claim.releases):
        raise Refuted(f"{direction}: a part is of no release of the question")
    return claim.releases[part["release"]]


def check_composition(
    claim: Claim, parts: list[dict], direction: str, shared: Shared, *, upper: bool
) -> None:
    """Check that every release is composed exactly as often as it happens, above; no more often,
    below.

    A false upper bound would have to have fewer rounds, so all releases are asked for, whether they
    have parts or not. An attack may look away from rounds, and from releases: it attains no more
    then.
    """
    for part in parts:
        release_of(claim, part, direction)
    for place, release in enumerate(claim.releases):
        mine = [part for part in parts if part["release"] == place]
        if upper and in_blocks(release, claim.adjacency):
            moments.check_blocks(release, mine, shared)
            continue
        times = sum(part["times"] for part in mine)
        # all parts of one release have one theorem
        happens = release.times(mine[0]["theorem"]) if upper and mine else release.rounds
        is_enough = times == happens if upper else times <= happens
        if not is_enough:
            raise Refuted(
                f"{direction}: release {place} happens {happens} times, not as often as its parts"
            )


def in_blocks(release: Release, adjacency: str) -> bool:
    """Whether a round is cut into blocks (Theorems 25, 27 and 72), each with laws of its own."""
    return (
        release.name == "random_allocation"
        and adjacency != "substitute"
        and not release.in_all_steps
    )


def composed(
    claim: Claim, parts: list[dict], direction: str, *, upper: bool, shared: Shared
) -> tuple[arb, str]:
    """Bound on delta at the claim's epsilon, and the size of its proof: kinks and shortfall."""
    laws: list[tuple[Law, int]] = []
    shortfalls = []
    for place, part in enumerate(parts):
        law = read_law(part["law"], f"{direction}, part {place}")
        release = claim.releases[part["release"]]
        case = Case(release, claim.adjacency, direction, part, law, claim.cut(), shared)
        missing = (
            THEOREMS[part["theorem"]].shortfall(case)
            if upper
            else STATISTICS[part["statistic"]](case)
        )
        laws.append((law, part["times"]))
        # for a lower bound the law may lack mass of the pair, whose total is 1
        shortfalls.append((missing, law.total() if upper else arb(1), part["times"]))
    delta = composed_profile(laws, claim.epsilon, claim.cut(), upper)
    charged = charge(shortfalls)
    delta = delta + charged if upper else delta - charged
    orders = sum(len(law.masses) for law, _ in laws)
    most = max((missing for missing, _, _ in shortfalls), key=float)
    note = f"{orders} {'orders' if upper else 'points'}; shortfall {shown(most) if most > 0 else 0}"
    return delta, note if upper else f"{attacked(parts, direction)}; {note}"


def attacked(parts: list[dict], direction: str) -> str:
    """Describe the attack in words."""
    words = {
        f"statistic {part['statistic']}, record {part['data']['record']:g} against "
        f"{_other(part['data']['other'])}, others {part['data']['filler']:g}"
        for part in parts
    }
    return f"{direction}: {'; '.join(sorted(words))}"


def _other(other: float | None) -> str:
    return "none" if other is None else f"{other:g}"


def shown(x: arb) -> str:
    return f"{float(x.mid()):.10g}"
