"""Data sets of attacks: the laws of the sum of one step on D and on D', before noise is added."""

from fractions import Fraction

from balls import ONE, ZERO, NotCovered, Refuted
from flint import arb
from multiplicity import ball, binomial, chain_counts, cut_sample, probability
from theorems import Case

Weights = dict[Fraction, arb]  # how probable which noiseless value is


def neighbours(case: Case) -> tuple[Fraction, Fraction, Fraction]:
    """What the record contributes in D and in D' along u, and what all others do; a record that is
    not there adds 0.

    The schema has seen to lengths of at most 1. Data sets that are no neighbours would have to have
    a record where the relation has none, or the other way round.
    """
    data = case.part["data"]
    gone = data["other"] is None
    mixed = isinstance(case.release.group, tuple)
    if gone != (case.adjacency == "add_remove" and not mixed):
        raise Refuted(f"data: D and D' are no neighbours under {case.adjacency}")
    other = Fraction(0) if gone else Fraction(data["other"])
    if case.adjacency == "zero_out" and other != 0:
        raise Refuted("data: under zero_out the record contributes 0 in D'")
    return Fraction(data["record"]), other, Fraction(data["filler"])


def noiseless(case: Case) -> tuple[Weights, Weights]:
    """The laws of the sum in direction u on D and on D' without its noise, up to one translation of
    both."""
    record, other, filler = neighbours(case)
    release, gone = case.release, case.part["data"]["other"] is None
    if release.name == "truncated_poisson":
        if release.group != 1:
            raise NotCovered("an attack on a group in cut samples")
        return cut_sums(case, record, other, filler, gone)
    group = release.group
    sizes = group if isinstance(group, tuple) else (group, group)
    if release.name in ("deterministic", "cyclic_poisson") or release.in_all_steps:
        rate = (
            probability(release.sampler["rate"], "rate")
            if release.name == "cyclic_poisson"
            else Fraction(1)
        )
        holds_all(case)
        fixed, laws = False, [binomial(size, rate, case.negligible) for size in sizes]
    else:
        stages = release.stages
        if stages is None:
            raise NotCovered(f"statistic 'sum' of {release.name}")
        fixed = stages[-1].kind != "poisson"
        slots = 1 if stages[0].kind == "poisson" else case.slots
        laws = [chain_counts(stages, slots, size, case.negligible) for size in sizes]
    if not fixed and filler != 0:
        raise NotCovered("fillers in a sample of random size")
    taken = filler if fixed else 0  # whose place an occurrence takes
    P: Weights = {}
    Q: Weights = {}
    for hits, chance in enumerate(laws[0].probabilities):
        add(P, hits * (record - taken), chance)
    if gone:
        return P, {Fraction(0): ONE}
    for hits, chance in enumerate(laws[1].probabilities):
        add(Q, hits * (other - taken), chance)
    return P, Q


def holds_all(case: Case) -> None:
    """An attack on a schedule needs a step that can hold the group."""
    release, size = case.release, case.release.group
    if release.in_all_steps:
        most = 1
    elif release.name == "deterministic":
        most = size if release.sampler["m"] is None else release.sampler["m"]
    else:
        cycle = release.sampler["cycle"]
        most = size if release.n is None else release.n // cycle
    if size != 1 and (isinstance(size, tuple) or most < size):
        raise NotCovered("an attack on a group of more records than a step holds")


def add(weights: Weights, value: Fraction, chance: arb) -> None:
    weights[value] = weights.get(value, ZERO) + chance


def cut_sums(
    case: Case, record: Fraction, other: Fraction, filler: Fraction, gone: bool
) -> tuple[Weights, Weights]:
    """Truncated Poisson (3.10): K' others are drawn; the record is kept with q where K' < B, else
    with q B/(K' + 1)."""
    sampler = case.release.sampler
    rate, most = probability(sampler["rate"], "rate"), sampler["max_batch"]
    _, kept, law = cut_sample(case.slots - 1, rate, most, case.negligible)
    P: Weights = {}
    Q: Weights = {}
    full = ZERO
    for drawn, chance in law.items():
        if drawn >= most:
            full += chance
            continue
        for weights, value in ((P, record), (Q, other)):
            add(weights, drawn * filler, chance * ball(1 - rate))
            add(weights, drawn * filler + value, chance * ball(rate))
    add(P, most * filler, full - kept)
    add(P, (most - 1) * filler + record, kept)
    add(Q, most * filler, full if gone else full - kept)
    if not gone:
        add(Q, (most - 1) * filler + other, kept)
    return P, Q
