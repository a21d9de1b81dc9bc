"""Certificates with a false claim, or of a question that cannot be asked, are not verified; a file
that is no certificate is refused in one sentence, whatever it holds.

The kinds are those of forgers: each is made here from an honest certificate, or from nothing.
"""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from attacks import noiseless
from balls import NotCovered, Refuted, Unreadable
from certificate import NOT_COVERED, REFUTED, UNREADABLE, VERIFIED, verify
from flint import arb
from question import Release, described, read_question
from reading import certificate
from theorems import Case

import dpsub
from dpsub.accounting.release import of_plain
from dpsub.errors import ArgumentError, UnsupportedError
from tests.few import few
from tests.verifier.forging import QUESTIONS, Data, at, forged, honest, leaves, put
from tests.verifier.proving import only_part, proved_again

ROOT = Path(__file__).parents[2]


def release_of(data: Data) -> Data:
    release: Data = data["question"]["releases"][0]
    return release


def only(data: Data, end: str) -> Data:
    other = {"upper": "lower", "lower": "upper"}[end]
    data["claim"][other] = data[other] = None
    return data


# --- Proofs that prove nothing --------------------------------------------------------------------


def ratios(*laws: tuple[int, list[int] | None]) -> list[Data]:
    """Return laws of likelihood ratios with all mass at 0."""
    zero = {"ratios": [0.0], "masses": [1.0], "lost": 0.0, "edges": []}
    return [{"terms": terms, "of": of, **zero} for terms, of in laws]


def certain(sampler: Data, n: int, steps: int, adjacency: str, data: Data, sums: Any) -> Data:
    """Return the claim of 900 by a law with all its mass at the loss 1000."""
    release = {
        "sampler": sampler,
        "n": n,
        "noise_multiplier": 10.0,
        "steps": steps,
        "mechanism": "gaussian",
        "denominator": "fixed",
        "sample": None,
    }
    law = {"step": 1.0, "offset": 0.0, "indices": [1000], "masses": [1.0], "infinity": 0.0}
    part = {
        "release": 0,
        "times": 1,
        "law": law,
        "data": data,
        "statistic": "all steps",
        "sums": sums,
    }
    return {
        "dpsub_certificate": 1,
        "made_by": "a forger",
        "question": {
            "releases": [release],
            "adjacency": adjacency,
            "quantity": "epsilon",
            "given": {"delta": 1e-5},
        },
        "claim": {"lower": 900.0, "upper": None},
        "upper": None,
        "lower": {"direction": "backward", "parts": [part]},
    }


def ratios_of_0_in_one_step() -> Data:
    """One line of the new law is 0, where the attained one is negative."""
    added = {"record": 1, "other": None, "filler": 0}
    sampler = {"name": "random_allocation", "t": 1, "k": 1}
    return certain(sampler, 10, 1, "add_remove", added, ratios((1, None)))


def ratios_of_0_in_several_steps() -> Data:
    added = {"record": 1, "other": None, "filler": 0}
    sampler = {"name": "random_allocation", "t": 2, "k": 1}
    return certain(sampler, 10, 2, "add_remove", added, ratios((1, None), (2, [0, 0])))


def ratios_of_0_shuffled() -> Data:
    replaced = {"record": 1, "other": -1, "filler": -1}
    laws = ratios((1, None), (2, [0, 0]), (4, [1, 1]))
    return certain({"name": "shuffle", "m": 25}, 100, 4, "substitute", replaced, laws)


def a_ratio_without_mass() -> Data:
    data = ratios_of_0_in_one_step()
    sums = data["lower"]["parts"][0]["sums"][0]
    sums["ratios"], sums["masses"], sums["edges"] = [0.0, 2.0], [1.0, 0.0], [1.0]
    return data


def a_lower_part_with_a_theorem() -> Data:
    data = only(honest("allocation of several"), "lower")
    (part,) = data["lower"]["parts"]
    part["theorem"], part["section"], part["times"] = "27", "4.6", 2
    part["sums"] = [{"terms": 2}]
    return data


def a_lower_part_too_often() -> Data:
    data = only(honest("allocation of several"), "lower")
    data["lower"]["parts"][0]["times"] = 2
    return data


def a_lower_part_twice() -> Data:
    data = only(honest("poisson"), "lower")
    data["lower"]["parts"] *= 2
    return data


def an_upper_part_left_out() -> Data:
    data = only(honest("poisson"), "upper")
    data["question"]["releases"].append(copy.deepcopy(release_of(data)))
    return data


def an_order_left_out() -> Data:
    data = only(honest("poisson"), "upper")
    data["upper"]["backward"] = None
    return data


def a_block_that_nobody_counts() -> Data:
    """A block of one step is given for a record that is in all steps."""
    data = only(honest("allocation of several"), "upper")
    for direction in ("forward", "backward"):
        part = data["upper"][direction][0]
        zero = {"ratios": [0.0, 1.0, 9.0], "masses": [0.2, 1.0, 0.1], "lost": 0.5, "edges": []}
        part["theorem"], part["times"] = "72", 1
        part["sums"] = [{"terms": 1, "of": None, **zero}]
        data["upper"][direction] = [part]
    release_of(data)["sampler"]["k"] = 4
    data["claim"]["upper"] = 0.5
    return data


def an_epoch_of_more_steps_than_it_says() -> Data:
    """The mean of four terms is called one of two: a record in one of four steps is hidden
    better."""
    data = only(honest("allocation"), "upper")
    answer = dpsub.account(dpsub.RandomAllocation(4), noise_multiplier=1.0, delta=0.05, quick=True)
    other = json.loads(json.dumps(answer.certificate()))
    assert other["claim"]["upper"] < data["claim"]["upper"] * 0.9
    data["upper"], data["claim"]["upper"] = other["upper"], other["claim"]["upper"]
    for direction in ("forward", "backward"):
        for part in data["upper"][direction]:
            assert part["sums"][-1]["terms"] == 4
            part["sums"][-1]["terms"] = 2
    return data


def an_attack_on_fewer_steps() -> Data:
    """The attack is on two steps, among which the record is found more easily than among four."""
    data = only(honest("allocation"), "lower")
    assert data["lower"]["parts"][0]["statistic"] == "all steps"
    release_of(data)["sampler"]["t"] = release_of(data)["steps"] = 4
    return data


def a_cut_sample_as_if_there_were_room_for_all() -> Data:
    """Most of four records are drawn and there is room for three; the fourth takes the place of
    another one."""
    asked: Data = {
        "noise_multiplier": 1.5,
        "delta": 0.05,
        "adjacency": "add_remove",
        "quick": True,
    }
    answer = dpsub.account(dpsub.Poisson(0.9), 3, **asked)
    data = only(json.loads(json.dumps(answer.certificate())), "upper")
    release_of(data)["sampler"] = {"name": "truncated_poisson", "rate": 0.9, "max_batch": 3}
    for direction in ("forward", "backward"):
        data["upper"][direction][0]["theorem"] = "18"
    truth = dpsub.account(dpsub.TruncatedPoisson(0.9, 3), 3, **asked)
    assert truth.lower > data["claim"]["upper"]
    return data


def ends_that_contradict() -> Data:
    data = honest("poisson")
    data["claim"] = {"lower": data["claim"]["upper"], "upper": data["claim"]["lower"]}
    return data


def the_certificate_of_another_question() -> Data:
    data, other = honest("poisson"), honest("poisson, group")
    data["question"], data["claim"] = other["question"], data["claim"]
    return only(data, "upper")


PROOFS = (
    ratios_of_0_in_one_step,
    ratios_of_0_in_several_steps,
    ratios_of_0_shuffled,
    a_ratio_without_mass,
    a_lower_part_with_a_theorem,
    a_lower_part_too_often,
    a_lower_part_twice,
    an_upper_part_left_out,
    an_order_left_out,
    a_block_that_nobody_counts,
    an_epoch_of_more_steps_than_it_says,
    an_attack_on_fewer_steps,
    a_cut_sample_as_if_there_were_room_for_all,
    ends_that_contradict,
    the_certificate_of_another_question,
)


@pytest.mark.parametrize("forge", PROOFS)
def test_a_proof_that_proves_nothing_is_not_verified(forge: Any, tmp_path: Path) -> None:
    lines, status = proved_again(forge(), tmp_path)
    expected = UNREADABLE if forge is a_lower_part_with_a_theorem else REFUTED
    assert status == expected, lines


def test_ends_that_contradict_each_other_are_both_refuted(tmp_path: Path) -> None:
    """Both are refuted whatever proves them: here nothing that is known."""
    data = ends_that_contradict()
    data["upper"]["forward"][0]["theorem"] = data["lower"]["parts"][0]["statistic"] = "99"
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED and len(lines) == 1 and "above the upper bound" in lines[0], lines


@pytest.mark.parametrize("name", ["poisson", "wor, zero_out", "deterministic", "allocation"])
@pytest.mark.parametrize("claim", [0.9, 1e3])
def test_each_order_of_the_neighbours_is_bounded(name: str, claim: float, tmp_path: Path) -> None:
    """A bound of each order is needed whatever is claimed, and whichever order is the worse one."""
    for order in ("forward", "backward"):
        data = only(honest(name), "upper")
        data["upper"]["forward"] = data["upper"][order]
        data["upper"]["backward"] = None
        data["claim"]["upper"] *= claim
        lines, status = proved_again(data, tmp_path)
        assert status == REFUTED and "needs a bound of this order" in lines[-1], lines


@pytest.mark.parametrize(
    ("sampler", "adjacency", "data"),
    [
        (
            {"name": "random_allocation", "t": 4, "k": 1},
            "add_remove",
            {"record": 1, "other": None, "filler": -1},
        ),
        (
            {"name": "random_allocation", "t": 4, "k": 2},
            "add_remove",
            {"record": 1, "other": None, "filler": 0},
        ),
        (
            {"name": "random_allocation", "t": 4, "k": 1},
            "substitute",
            {"record": 1, "other": -1, "filler": 0},
        ),
        ({"name": "shuffle", "m": 25}, "substitute", {"record": 1, "other": -1, "filler": 0}),
        ({"name": "shuffle", "m": 25}, "zero_out", {"record": 1, "other": 0, "filler": -1}),
    ],
)
def test_the_ratio_of_an_epoch_is_that_of_a_record_that_does_nothing(
    sampler: Data, adjacency: str, data: Data, tmp_path: Path
) -> None:
    """The ratio is that of a record that does nothing in D', and of one step; for all other data
    sets it is another one."""
    made = certain(sampler, 100, 4, adjacency, data, ratios((1, None), (2, [0, 0]), (4, [1, 1])))
    lines, status = proved_again(made, tmp_path)
    assert status == REFUTED and "only where the record does nothing" in lines[-1], lines


@pytest.mark.parametrize(
    ("name", "adjacency", "why"),
    [
        ("wor", "zero_out", "contributes 0 in D'"),
        ("wr", "zero_out", "contributes 0 in D'"),
        ("wor, zero_out", "add_remove", "no neighbours under add_remove"),
        ("wor", "add_remove", "no neighbours under add_remove"),
        ("wor, add_remove", "substitute", "no neighbours under substitute"),
        ("poisson", "zero_out", "no neighbours under zero_out"),
        ("poisson", "substitute", "no neighbours under substitute"),
    ],
)
def test_data_sets_are_neighbours(name: str, adjacency: str, why: str, tmp_path: Path) -> None:
    data = only(honest(name), "lower")
    data["question"]["adjacency"] = adjacency
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED and why in lines[-1], lines


def test_a_bound_of_half_the_distance_is_none_of_substitution(tmp_path: Path) -> None:
    """The bound is none of substitution although one profile serves both orders under both
    relations."""
    data = only(honest("shuffle, zero_out"), "upper")
    data["upper"]["backward"] = None
    assert proved_again(data, tmp_path)[1] == VERIFIED
    data["question"]["adjacency"] = "substitute"
    for row in only_part(data)["clones"]:
        row["grids"] = row["grids"][:1]
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED and "the composed profile is" in lines[-1], lines


def test_fillers_of_samples_of_random_size_move_the_sum(tmp_path: Path) -> None:
    data = only(honest("poisson"), "lower")
    for filler in (-1, 0.5):
        for part in data["lower"]["parts"]:
            part["data"]["filler"] = filler
        lines, status = proved_again(data, tmp_path)
        assert status == NOT_COVERED and "sample of random size" in lines[-1], lines


def test_fillers_of_an_allocation_move_its_sums(tmp_path: Path) -> None:
    """The number of fillers that a step holds is random."""
    data = only(honest("allocation of several"), "lower")
    (part,) = data["lower"]["parts"]
    assert part["statistic"] == "step functions"
    part["data"]["filler"] = -1
    lines, status = proved_again(data, tmp_path)
    assert status == NOT_COVERED and "number of records is random" in lines[-1], lines


@pytest.mark.parametrize(("n", "group"), [(6, 4), (7, 4), (None, 2)])
def test_a_group_is_attacked_where_it_has_room(n: int | None, group: int) -> None:
    """A group is attacked in one group of a cyclic schedule: 3 of 6 or 7 records; any, where n is
    not told."""
    release = Release(
        {"name": "cyclic_poisson", "rate": 0.5, "cycle": 2}, n, arb(1), 2, False, group
    )
    data = {"data": {"record": 1, "other": 0, "filler": 0}}
    case = Case(release, "zero_out", "forward", data, None, arb(0))
    if n is None:
        assert len(noiseless(case)[0].weights) == group + 1
        return
    with pytest.raises(NotCovered, match=r"too large: 4 records .* of at most 3"):
        noiseless(case)


# --- Questions that cannot be asked ---------------------------------------------------------------

CHAIN = {"name": "multistage", "chain": [{"kind": "wor", "size": 3}, {"kind": "wr", "size": 2}]}
IMPOSSIBLE: list[tuple[str, Data, str, int]] = [
    ("wor, add_remove", {"sampler": {"name": "wor", "m": 11}, "n": 10}, "add_remove", REFUTED),
    ("wor", {"sampler": {"name": "must_oo", "b": 100, "m": 2}, "n": 10}, "substitute", REFUTED),
    ("wor", {"sampler": {"name": "must_oo", "b": 2, "m": 3}, "n": 10}, "substitute", REFUTED),
    ("wor", {"sampler": {"name": "wor", "m": 1}, "n": 1, "group": 3}, "substitute", REFUTED),
    ("wor, zero_out", {"group": 6}, "zero_out", REFUTED),
    ("wor", {"n": None}, "substitute", REFUTED),
    ("truncated", {"n": None}, "add_remove", REFUTED),
    ("shuffle", {"n": None}, "substitute", REFUTED),
    ("deterministic", {"n": None}, "zero_out", REFUTED),
    ("cyclic", {"sampler": {"name": "cyclic_poisson", "rate": 0.5, "cycle": 0}}, "zero_out", 1),
    ("wor", {"sampler": {"name": "wor", "m": 0}}, "substitute", REFUTED),
    ("poisson", {"sampler": {"name": "poisson", "rate": 2.0}}, "add_remove", REFUTED),
    ("poisson", {"sampler": {"name": "poisson", "rate": 0.0}}, "add_remove", REFUTED),
    ("poisson", {"noise_multiplier": 1e-9}, "add_remove", REFUTED),
    ("poisson", {"noise_multiplier": -1.0}, "add_remove", REFUTED),
    ("poisson", {"steps": 10**15}, "add_remove", REFUTED),
    ("poisson", {"steps": 0}, "add_remove", REFUTED),
    ("poisson", {"group": [2, 1]}, "substitute", REFUTED),
    ("poisson", {"group": [1, 2]}, "add_remove", REFUTED),
    ("poisson", {"group": [0, 1]}, "add_remove", REFUTED),
    ("poisson", {"group": [10**7, 1]}, "add_remove", NOT_COVERED),
    ("wor, add_remove", {"group": [1, 1]}, "add_remove", NOT_COVERED),
    ("wor, add_remove", {"group": [2, 1]}, "add_remove", NOT_COVERED),
    ("poisson", {"denominator": "realised"}, "add_remove", NOT_COVERED),
    ("poisson", {"sample": "once"}, "add_remove", NOT_COVERED),
    ("poisson", {"mechanism": "cauchy"}, "add_remove", NOT_COVERED),
    ("wr", {"mechanism": "laplace"}, "substitute", NOT_COVERED),
    ("shuffle", {}, "add_remove", NOT_COVERED),
    ("shuffle", {"steps": 4}, "substitute", REFUTED),
    ("shuffle", {"sampler": {"name": "shuffle", "m": 7}, "steps": 1}, "substitute", REFUTED),
    ("deterministic", {"n": 6}, "add_remove", REFUTED),
    ("cyclic", {"n": 1}, "add_remove", REFUTED),
    ("allocation", {"sampler": {"name": "random_allocation", "t": 2, "k": 3}}, "add_remove", 1),
    ("wor", {"sampler": {"name": "pps", "m": 2}}, "substitute", NOT_COVERED),
    ("wor", {"sampler": CHAIN | {"chain": CHAIN["chain"][::-1]}}, "substitute", REFUTED),
    (
        "wor",
        {"sampler": CHAIN | {"chain": [{"kind": "poisson", "rate": 0.5}, CHAIN["chain"][0]]}},
        "substitute",
        NOT_COVERED,
    ),
]


@pytest.mark.parametrize(("name", "change", "adjacency", "expected"), IMPOSSIBLE, ids=str)
def test_what_cannot_be_asked_is_not_verified(
    name: str, change: Data, adjacency: str, expected: int, tmp_path: Path
) -> None:
    data = honest(name)
    data["question"]["adjacency"] = adjacency
    release_of(data).update(change)
    lines, status = proved_again(data, tmp_path)
    assert status == expected and len(lines) == 1, lines


@pytest.mark.parametrize(
    ("quantity", "given"),
    [("epsilon", {"delta": delta}) for delta in (0, 0.0, 1, 1.5, -1e-5)]
    + [("delta", {"epsilon": epsilon}) for epsilon in (-1e-9, 1.1e12, 1e300)],
    ids=str,
)
def test_what_cannot_be_given(quantity: str, given: Data, tmp_path: Path) -> None:
    data = honest("poisson" if quantity == "epsilon" else "wor, of delta")
    data["question"]["given"] = given
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED and len(lines) == 1, lines


def test_releases_have_one_group(tmp_path: Path) -> None:
    data = honest("poisson")
    data["question"]["releases"].append(release_of(data) | {"group": 2})
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED and "one group" in lines[-1]


# --- What is no certificate -----------------------------------------------------------------------


def changed(data: Data, place: tuple[Any, ...], value: Any) -> Data:
    inner: Any = data
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return data


RELEASE, LAW = ("question", "releases", 0), ("upper", "forward", 0, "law")
STAGE = {"kind": "poisson", "size": 1e-9, "rate": 0.5}
NO_CERTIFICATES: list[tuple[tuple[Any, ...], Any]] = [
    (("dpsub_certificate",), True),
    (("dpsub_certificate",), 1.0),
    (("dpsub_certificate",), 2),
    (("claim",), {"lower": None, "upper": None}),
    (("claim", "lower"), 0),
    (("claim", "lower"), False),
    (("claim", "lower"), "0.1"),
    (("claim", "upper"), True),
    (("claim", "upper"), 10**400),
    (("claim", "upper"), -1.0),
    (("upper",), None),
    (("sensitivity",), 100),
    (("made_by",), "a\nb"),
    ((*RELEASE, "kept_for"), 5),
    ((*RELEASE, "unit"), "household"),
    ((*RELEASE, "steps"), 2.0),
    ((*RELEASE, "steps"), True),
    ((*RELEASE, "n"), "5"),
    ((*RELEASE, "noise_multiplier"), True),
    ((*RELEASE, "sampler", "size"), 1),
    ((*RELEASE, "sampler"), {"name": "multistage", "chain": [STAGE]}),
    ((*RELEASE, "sampler"), {"name": "multistage", "chain": []}),
    ((*RELEASE, "group"), 2.0),
    ((*RELEASE, "group"), [1]),
    (("question", "given"), {"delta": 1e-5, "epsilon": 1.0}),
    (("question", "given"), {"epsilon": 1.0}),
    (("question", "releases"), []),
    ((*LAW, "kept"), 1),
    ((*LAW, "step"), 0.0),
    ((*LAW, "masses"), []),
    ((*LAW, "masses"), [True]),
    ((*LAW, "masses"), [10**400]),
    ((*LAW, "indices"), [0.0]),
    ((*LAW, "indices", -1), 10**1000),
    ((*LAW, "indices", -1), 10**12),
    (("upper", "forward"), []),
    (("upper", "forward", 0, "times"), 0),
    (("upper", "forward", 0, "data"), {}),
    (("lower", "parts", 0, "times"), True),
    (("lower", "parts", 0, "theorem"), "27"),
    (("lower", "parts", 0, "data", "record"), True),
    (("lower", "parts", 0, "data", "record"), 1.5),
    (("lower", "parts"), []),
    (("lower", "direction"), "both"),
]


@pytest.mark.parametrize(("place", "value"), NO_CERTIFICATES, ids=str)
def test_what_is_no_certificate_is_not_read(
    place: tuple[Any, ...], value: Any, tmp_path: Path
) -> None:
    lines, status = proved_again(changed(honest("poisson"), place, value), tmp_path)
    assert status == UNREADABLE and len(lines) == 1, lines
    assert lines[0].startswith("not readable: ") and len(lines[0]) < 300


VALUES: list[Any] = [
    *(None, True, False, 0, -1, 5, 10**15, -(10**15), 10**400, 0.0, 0.5, -2.5, 1e308, 5e-324),
    *("", "x", "poisson", "\u0000", "\ud800", [], [[]], [1, 2], ["x"], [None], {}, {"name": "x"}),
]


@pytest.mark.parametrize("name", few(QUESTIONS, most=6))
def test_any_value_in_any_place_is_read_or_refused(name: str) -> None:
    """The schema or the rules of a question refuse it: nothing else fails."""
    whole = honest(name)
    refused = 0
    for place in leaves(whole):
        for value in VALUES:
            before = at(whole, place)
            put(whole, place, value)
            try:
                described(read_question(certificate(whole, "certificate")["question"]))
            except (Unreadable, Refuted, NotCovered) as error:
                # what stands there may name what is not known, at some length
                assert len(str(error)) < 400 and str(error).isprintable(), error
                refused += 1
            put(whole, place, before)
    assert refused > 0.7 * len(leaves(whole)) * len(VALUES)


DEEP = 100_000
TEXTS = {
    "nothing": "",
    "no JSON": "{",
    "no object": "[1]",
    "a number": "5",
    "a text": '"5"',
    "null": "null",
    "no number": '{"claim": NaN}',
    "infinity": '{"claim": 1e999}',
    "many digits": '{"claim": ' + "9" * 10_000 + "}",
    "deep": "[" * DEEP + "]" * DEEP,
    "three lines": '{"dpsub_certificate": 1, "claim": {"lower": null, "upper": null}}',
    "no letters": "\udcff",
}


@pytest.mark.parametrize("name", TEXTS)
def test_no_text_makes_it_fail(name: str, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_bytes(TEXTS[name].encode("utf-8", "surrogateescape"))
    lines, status = verify(str(path))
    assert status == UNREADABLE and len(lines) == 1 and len(lines[0]) < 300, lines


def test_a_key_that_stands_twice_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    text = json.dumps(honest("poisson"))
    assert text.count('"noise_multiplier": ') == 1
    path.write_text(
        text.replace('"noise_multiplier": ', '"noise_multiplier": 0.1, "noise_multiplier": ')
    )
    lines, status = verify(str(path))
    assert status == UNREADABLE and "'noise_multiplier' stands twice" in lines[0]


def test_a_key_is_looked_for_in_no_more_time_than_it_takes_to_read(tmp_path: Path) -> None:
    """The last of many keys stands twice: each may be compared with few."""
    path = tmp_path / "c.json"
    keys = [f"k{i}" for i in range(10**5)]
    path.write_text(json.dumps(dict.fromkeys(keys, 0)).replace("}", ', "k99999": 1}'))
    begun = time.process_time()
    lines, status = verify(str(path))
    # a second, where all pairs of keys would take minutes
    assert status == UNREADABLE and time.process_time() - begun < 20, lines


def test_a_file_beyond_all_certificates_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    with path.open("wb") as file:
        file.truncate(2**26 + 1)
    lines, status = verify(str(path))
    assert status == UNREADABLE and "more than 67108864 bytes" in lines[0]


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/no/such/file"])
def test_what_is_no_ordinary_file_is_not_read(path: str) -> None:
    lines, status = verify(path)
    assert status == UNREADABLE and len(lines) == 1


# --- What would not end ---------------------------------------------------------------------------

ENDLESS: list[tuple[str, Data, tuple[Any, ...], Any]] = [
    ("poisson", {}, (*LAW, "indices", -1), 10**9),
    ("poisson", {}, ("lower", "parts", 0, "law", "indices", -1), 10**9),
    ("poisson", {}, (*LAW, "step"), 1e-20),
    ("wr", {"sampler": {"name": "wr", "m": 10**15}}, (), None),
    ("truncated", {"n": 10**9}, (), None),
    ("poisson", {"group": 10**9}, (), None),
    ("wor", {"n": 10**9, "group": 10**5}, ("upper", "forward", 0, "theorem"), "36"),
    ("allocation of several", {}, ("upper", "blocks"), "60 of 300"),
    ("poisson", {}, ("claim", "upper"), 1e300),
]


def sixty_steps_in_a_block(data: Data) -> None:
    """By Theorem 72 there are a hundred thousand ways to overlap."""
    release_of(data).update(
        {"sampler": {"name": "random_allocation", "t": 300, "k": 60}, "steps": 300}
    )
    (part, *_) = data["upper"]["forward"]
    revealed = [{"times": 60, "law": part["law"], "sums": part["sums"]}]
    total = {"edges": [0.0], "first": 0, "together": 1, "count": 301}
    directions = ("forward", "backward")
    data["upper"]["blocks"] = [
        {
            "steps": 300,
            "own": 60,
            "sums": [total],
            "orders": {direction: [0.0, 1.0] for direction in directions},
            "revealed": dict.fromkeys(directions, revealed),
        }
    ]
    common = {key: part[key] for key in ("release", "section", "law")}
    for direction in directions:
        data["upper"][direction] = [{**common, "theorem": "72", "times": 1, "block": 0}]


@pytest.mark.parametrize(("name", "change", "place", "value"), ENDLESS, ids=str)
def test_what_would_not_end_is_not_begun(
    name: str, change: Data, place: tuple[Any, ...], value: Any, tmp_path: Path
) -> None:
    data = honest(name)
    release_of(data).update(change)
    if place:
        changed(data, place, value)
    if value == "60 of 300":
        sixty_steps_in_a_block(data)
    if place[:2] != ("claim", "upper"):
        only(data, "lower" if "lower" in place else "upper")
    lines, status = proved_again(data, tmp_path)
    assert status in (REFUTED, NOT_COVERED), lines
    assert "too large" in lines[-1] or place == (*LAW, "step"), lines


def test_half_of_a_large_data_set_takes_no_time(tmp_path: Path) -> None:
    """The chances are ratios of few factors."""
    data = only(honest("wor"), "upper")
    release_of(data).update({"n": 10**9, "sampler": {"name": "wor", "m": 4 * 10**8}})
    assert proved_again(data, tmp_path)[1] == VERIFIED


def test_a_policy_of_many_blocks_is_not_played(tmp_path: Path) -> None:
    data = only(honest("wor, policy"), "lower")
    assert "blocks" in data["lower"]
    release_of(data)["steps"] = 10**7
    data["lower"]["blocks"] = [[1, 10**7]]
    lines, status = proved_again(data, tmp_path)
    assert status == NOT_COVERED and "too large" in lines[-1]


@pytest.mark.parametrize(
    ("window", "given", "expected", "why"),
    [
        ([10, -10], 0.1, REFUTED, "window must not fall"),
        ([-(10**8), 10**8], 0.1, NOT_COVERED, "200000001 places of a policy's window, of at most"),
        ([-100_000, 99_999], 0.1, NOT_COVERED, "window in all its blocks, of at most"),
        ([-100, 100], 1e-300, NOT_COVERED, "bits of a policy's numbers"),
    ],
)
def test_a_policy_has_a_size(
    window: list[int], given: float, expected: int, why: str, tmp_path: Path
) -> None:
    data = only(honest("wor, policy"), "lower")
    release_of(data)["steps"] = 10**4
    data["lower"]["window"], data["lower"]["blocks"] = window, [[1, 10**4]]
    data["question"]["given"] = {"delta": given}
    if given < 0.1:
        data["claim"]["lower"] = 1e5
    lines, status = proved_again(data, tmp_path)
    assert status == expected and why in lines[-1], lines


def test_a_policy_plays_no_more_steps_than_there_are(tmp_path: Path) -> None:
    data = only(honest("wor, policy"), "lower")
    release_of(data)["steps"] = 1
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED and "plays 2 steps, of 1" in lines[-1], lines


# --- Forgeries in numbers -------------------------------------------------------------------------


@pytest.mark.parametrize("name", few(QUESTIONS, most=len(QUESTIONS)))
def test_what_forgeries_are_made_from_is_verified(name: str, tmp_path: Path) -> None:
    lines, status = proved_again(honest(name), tmp_path)
    assert (lines[-1], status) == ("verified", VERIFIED)


FORGERIES = 90


def check_forgeries(seeds: range, folder: Path) -> None:
    for seed in seeds:
        data, name = forged(seed)
        lines, status = proved_again(data, folder)
        assert status in (REFUTED, UNREADABLE, NOT_COVERED), (seed, name, lines)


def test_no_forgery_is_verified(tmp_path: Path) -> None:
    check_forgeries(range(FORGERIES), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("block", range(1, 81))
def test_none_of_thousands_of_forgeries_is_verified(block: int, tmp_path: Path) -> None:
    check_forgeries(range(block * FORGERIES, (block + 1) * FORGERIES), tmp_path)


# --- Another question, for the same proof ---------------------------------------------------------


def parts_of(end: Data) -> list[Data]:
    return [
        part
        for key in ("forward", "backward", "parts")
        for part in end.get(key) or []
        if isinstance(part, dict)
    ]


def more_noise(data: Data, end: str) -> None:
    release_of(data)["noise_multiplier"] *= 0.97 if end == "upper" else 1.03


def other_steps(data: Data, end: str) -> None:
    """The proof has as many laws as the other question needs."""
    release = release_of(data)
    rounds, epoch = release["steps"], data["question"]["releases"][0]["sampler"].get("cycle", 1)
    release["steps"] = 2 * rounds if end == "upper" else rounds // 2 // epoch * epoch or epoch
    for part in parts_of(data[end]):
        part["times"] = max(part["times"] * release["steps"] // rounds, 1)


def other_size(data: Data, end: str) -> None:
    sampler = release_of(data)["sampler"]
    for name, size in sampler.items():
        if name == "rate":
            sampler[name] = size * (1.1 if end == "upper" else 0.9)
        elif name in ("m", "b", "max_batch", "k"):
            sampler[name] = max(size + (1 if end == "upper" else -1), 1)


def other_group(data: Data, end: str) -> None:
    release = release_of(data)
    release["group"] = release.get("group", 1) + (1 if end == "upper" else -1)


def other_relation(data: Data, end: str) -> None:
    """The relation is substitution for an upper bound, as replacing tells more than adding."""
    data["question"]["adjacency"] = "substitute" if end == "upper" else "zero_out"
    for part in parts_of(data[end]) if end == "lower" else []:
        part["data"]["other"] = 0


def answer_of(question: Data) -> dpsub.Account:
    (release,) = question["releases"]
    asked = of_plain(release)
    return dpsub.account(
        asked.sampler,
        asked.n,
        noise_multiplier=asked.noise_multiplier,
        steps=asked.steps,
        mechanism=asked.mechanism,
        group=asked.group,
        adjacency=question["adjacency"],
        quick=True,
        **question["given"],
    )


CHANGES = (more_noise, other_steps, other_size, other_group, other_relation)


@pytest.mark.parametrize(
    ("change", "end"),
    few(
        [
            *zip(CHANGES, cycle(["upper", "lower"]), strict=False),
            *zip(CHANGES, cycle(["lower", "upper"]), strict=False),
        ],
        more=2,
    ),
)
def test_a_proof_of_another_question_is_none_of_this_one(
    change: Any, end: str, tmp_path: Path
) -> None:
    """No proof is verified where the claim is false of the other question, as its ends by the
    package show."""
    false = 0
    for name in QUESTIONS:
        data = only(honest(name), end)
        change(data, end)
        lines, status = proved_again(data, tmp_path)
        try:
            answer = answer_of(data["question"])
        except (ArgumentError, UnsupportedError):
            assert status != VERIFIED, (name, lines)
            continue
        claim = data["claim"][end]
        if claim < answer.lower if end == "upper" else claim > answer.upper:
            assert status != VERIFIED, (name, lines)
            false += 1
    assert false > 0


# --- The program ----------------------------------------------------------------------------------


def test_the_program_says_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text("[" * DEEP)
    done = subprocess.run(
        [sys.executable, str(ROOT / "verifier"), str(path)], capture_output=True, text=True
    )
    assert done.returncode == UNREADABLE and done.stderr == ""
    assert done.stdout.startswith("not readable: ") and done.stdout.count("\n") == 1


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    missing, honest_file = str(tmp_path / "missing.json"), tmp_path / "c.json"
    reason = "cannot be read (No such file or directory); name another file"
    lines, status = verify(missing)
    assert status == UNREADABLE
    assert lines[0].startswith("not readable: ") and lines[0].endswith(reason)
    assert "Errno" not in lines[0]
    lines, status = verify("c\0.json")
    assert status == UNREADABLE and "name another file" in lines[0]
    honest_file.write_text(json.dumps(honest("poisson")), encoding="utf-8")
    lines, status = verify(str(honest_file), missing)
    assert status == UNREADABLE
    assert "what is expected cannot be read: " in lines[0] and lines[0].endswith(reason)


# --- Attacks on what is not released --------------------------------------------------------------


def shuffled(n: int, m: int) -> Data:
    answer = dpsub.account(
        dpsub.Shuffle(m), n, noise_multiplier=1.5, epochs=2, delta=1e-3, adjacency="zero_out"
    )
    return json.loads(json.dumps(answer.certificate()))


def test_an_attack_on_releases_that_stand_for_others_is_refuted(tmp_path: Path) -> None:
    data = only(shuffled(6, 2), "lower")
    release_of(data)["one_sided"] = True
    lines, status = proved_again(data, tmp_path)
    assert status == REFUTED
    assert "in the place of others" in "".join(lines)
    # nothing else is wrong with it
    assert proved_again(only(shuffled(6, 2), "lower"), tmp_path)[1] == VERIFIED


def test_an_attack_on_all_records_is_none_where_some_are_dropped(tmp_path: Path) -> None:
    data = only(shuffled(6, 2), "lower")
    release_of(data)["sampler"]["drop_last"], release_of(data)["n"] = True, 7
    assert proved_again(data, tmp_path)[1] == NOT_COVERED
    # where the last batch is whole none is
    release_of(data)["n"] = 6
    assert proved_again(data, tmp_path)[1] == VERIFIED


@pytest.mark.parametrize("value", [False, 1, None, "yes"])
def test_what_is_usual_is_left_out(value: Any, tmp_path: Path) -> None:
    data = shuffled(6, 2)
    release_of(data)["sampler"]["drop_last"] = value
    assert proved_again(data, tmp_path)[1] == UNREADABLE
