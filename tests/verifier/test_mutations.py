"""A certificate with one wrong entry is refuted."""

import copy
import json

import pytest
from certificate import verify

import dpsub
from dpsub.cli import main
from tests.few import few
from tests.verifier.proving import proved_again

QUESTIONS = {
    "poisson": "poisson --rate 0.25 --noise-multiplier 1 --steps 2 --epsilon 1",
    "substitute": "poisson --rate 0.25 --noise-multiplier 1 --steps 2 --delta 0.001 --adjacency "
    "substitute",
    "wr": "wr --n 4 --m 2 --noise-multiplier 1 --steps 2 --epsilon 1 --adjacency add_remove",
    "laplace": "wor --n 4 --m 2 --noise-multiplier 2 --steps 3 --mechanism laplace --epsilon .5 "
    "--adjacency add_remove",
    "laplace, zero_out": "wor --n 4 --m 2 --noise-multiplier 2 --steps 3 --mechanism laplace "
    "--epsilon .5 --adjacency zero_out",
    "wr, zero_out": "wr --n 4 --m 2 --noise-multiplier 1 --steps 2 --epsilon 1 --adjacency "
    "zero_out",
    "must_ow, zero_out": "must_ow --n 4 --b 2 --m 2 --noise-multiplier 1 --steps 2 --epsilon 1 "
    "--adjacency zero_out",
    "must_ww, zero_out": "must_ww --n 4 --b 2 --m 2 --noise-multiplier 1 --steps 2 --epsilon 1 "
    "--adjacency zero_out",
    "group": "poisson --rate 0.25 --noise-multiplier 1 --steps 2 --epsilon 1 --group 2",
    "group, wr": "wr --n 4 --m 2 --noise-multiplier 1 --steps 2 --epsilon 1 --adjacency add_remove "
    "--group 2",
    "truncated": "truncated_poisson --n 6 --rate .3 --max-batch 2 --noise-multiplier 1 --steps 2 "
    "--epsilon 1",
}


@pytest.fixture(scope="module", params=few(QUESTIONS, more=3))
def certificate(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("certificates") / "c.json"
    assert main(["account", *QUESTIONS[request.param].split(), "--certificate", str(path)]) in (
        None,
        0,
    )
    return json.loads(path.read_text())


def heaviest(law):
    """Return the index of the mass right of loss 0 that matters most."""
    places = [i for i, index in enumerate(law["indices"]) if index * law["step"] > 0.3]
    return max(places, key=lambda i: law["masses"][i])


def less_mass(data):
    law = data["upper"]["forward"][0]["law"]
    law["masses"][heaviest(law)] *= 0.9


def more_mass(data):
    law = data["lower"]["parts"][0]["law"]
    law["masses"][heaviest(law)] *= 1.1


def lost_mass(data):
    law = data["upper"]["forward"][0]["law"]
    law["masses"][0] *= 0.5
    law["masses"][len(law["masses"]) // 2] *= 0.9


def shifted(data):
    law = data["upper"]["forward"][0]["law"]
    law["offset"] -= law["step"]


def less_noise(data):
    data["question"]["releases"][0]["noise_multiplier"] *= 0.98


def more_noise(data):
    data["question"]["releases"][0]["noise_multiplier"] *= 1.02


def more_steps(data):
    data["question"]["releases"][0]["steps"] += 1


def fewer_steps(data):
    data["question"]["releases"][0]["steps"] -= 1


def other_relation(data):
    relation = data["question"]["adjacency"]
    # an attack that puts a record to 0 is one under substitute
    other = {"add_remove": "substitute", "substitute": "add_remove", "zero_out": "add_remove"}
    data["question"]["adjacency"] = other[relation]


OTHER = {"1": "17", "9": "2", "73": "16", "47": "16", "18": "1", "71": "18", "35": "1", "37": "35"}


def other_theorem(data):
    for parts in (data["upper"]["forward"], data["upper"]["backward"] or []):
        for part in parts:
            part["theorem"] = OTHER[part["theorem"]]


def one_direction(data):
    """Leave out a direction, under a relation with two."""
    data["upper"]["backward"] = None
    data["question"]["adjacency"] = "zero_out"


def claimed_upper(data):
    data["claim"]["upper"] -= 1e-4 * data["claim"]["upper"]


def claimed_lower(data):
    data["claim"]["lower"] += 1e-2 * data["claim"]["lower"]


def other_filler(data):
    data["lower"]["parts"][0]["data"]["record"] = 0.9


UPPER = (
    less_mass,
    lost_mass,
    shifted,
    less_noise,
    more_steps,
    other_relation,
    other_theorem,
    one_direction,
    claimed_upper,
)
LOWER = (more_mass, more_noise, fewer_steps, other_relation, claimed_lower, other_filler)
MUTATIONS = [("upper", mutate) for mutate in UPPER] + [("lower", mutate) for mutate in LOWER]


def test_the_certificate_itself_is_verified(certificate, tmp_path):
    lines, status = proved_again(certificate, tmp_path)
    assert (lines[-1], status) == ("verified", 0)


@pytest.mark.parametrize(("end", "mutate"), MUTATIONS)
def test_one_wrong_entry_is_refuted(certificate, end, mutate, tmp_path):
    """The end with the wrong entry is refuted, without the help of the other one."""
    data = copy.deepcopy(certificate)
    data["claim"]["lower" if end == "upper" else "upper"] = None
    mutate(data)
    lines, status = proved_again(data, tmp_path)
    # no theorem is about some of the questions that a change makes
    assert status == 1 or (status == 3 and mutate in (other_relation, one_direction)), lines


PUT_TO_0 = {"delta": 0.3, "adjacency": "zero_out", "quick": True}
OTHER_FILLERS = {
    "wr": (dpsub.Wr(2), 2, {"noise_multiplier": 1.0, "steps": 1}, 0),
    "laplace": (
        dpsub.Wor(4),
        5,
        {"noise_multiplier": 5.0, "steps": 30, "mechanism": "laplace"},
        1,
    ),
}


@pytest.mark.parametrize("name", few(OTHER_FILLERS))
def test_other_fillers_of_a_record_put_to_0_are_refuted(name, tmp_path):
    sampler, n, asked, fillers = OTHER_FILLERS[name]
    found = dpsub.account(sampler, n, **asked, **PUT_TO_0).certificate()
    assert found["lower"]["parts"][0]["data"] == {"record": 1, "other": 0, "filler": fillers}
    assert proved_again(found, tmp_path)[1] == 0
    for filler in {-1, 0, 1} - {fillers}:
        data = copy.deepcopy(found)
        data["lower"]["parts"][0]["data"]["filler"] = filler
        lines, status = proved_again(data, tmp_path)
        assert status == 1 and lines[-1].startswith("refuted: lower bound"), lines


@pytest.mark.parametrize(
    ("named", "sampler"),
    [
        ("47", {"name": "poisson", "rate": 0.5}),
        ("47", {"name": "truncated_poisson", "rate": 0.5, "max_batch": 2}),
        ("73", {"name": "wr", "m": 2}),
    ],
)
def test_theorems_of_a_record_put_to_0_need_their_samples(named, sampler, tmp_path):
    noise = {"47": {}, "73": {"mechanism": "laplace"}}[named]
    asked = {"noise_multiplier": 1.0, "steps": 1, **noise, **PUT_TO_0}
    chain = dpsub.Wr(2) if named == "47" else dpsub.Wor(2)
    found = dpsub.account(chain, 4, **asked).certificate()
    assert found["upper"]["forward"][0]["theorem"] == named
    found["claim"]["lower"] = None
    for change in ({"sampler": sampler}, {"mechanism": "laplace" if named == "47" else "gaussian"}):
        data = copy.deepcopy(found)
        data["question"]["releases"][0] = data["question"]["releases"][0] | change
        lines, status = proved_again(data, tmp_path)
        assert status in (1, 3), lines
        assert "is not about" in lines[-1] or "no theorem of this program" in lines[-1], lines


UNITS = {
    "poisson": (dpsub.Poisson(0.25), None, "add_remove", {"35": "37"}),
    "mixed": (dpsub.Poisson(0.25), None, "add_remove", {"35": "9"}),
    "wor": (dpsub.Wor(2), 9, "substitute", {"36": "2"}),
    "wr": (dpsub.Wr(2), 9, "add_remove", {"37": "36"}),
    "zero_out": (dpsub.Wor(2), 9, "zero_out", {"38": "16"}),
}


@pytest.mark.parametrize("name", few(UNITS))
def test_a_unit_of_another_size_is_refuted(name, tmp_path):
    """The unit has more records than that of the proof, or fewer than that of the attack, or
    another theorem."""
    sampler, n, adjacency, other = UNITS[name]
    group = (2, 1) if name == "mixed" else 2
    asked = {"noise_multiplier": 1.0, "steps": 2, "epsilon": 1.0, "adjacency": adjacency}
    found = dpsub.account(sampler, n, group=group, **asked).certificate()
    found = json.loads(json.dumps(found))
    lines, status = proved_again(found, tmp_path)
    assert (lines[-1], status) == ("verified", 0), lines
    larger, smaller = ([3, 1], [1, 1]) if name == "mixed" else (3, 1)
    for end, size in (("upper", larger), ("lower", smaller)):
        data = copy.deepcopy(found)
        data["claim"]["lower" if end == "upper" else "upper"] = None
        data["question"]["releases"][0]["group"] = size
        lines, status = proved_again(data, tmp_path)
        assert status == 1 and lines[-1].startswith(f"refuted: {end} bound"), lines
    [(named, wrong)] = other.items()
    data = copy.deepcopy(found)
    assert data["upper"]["forward"][0]["theorem"] == named
    for part in (*data["upper"]["forward"], *(data["upper"]["backward"] or [])):
        part["theorem"] = wrong
    lines, status = proved_again(data, tmp_path)
    assert status == 1 and lines[-1].startswith("refuted: upper bound"), lines


@pytest.mark.parametrize("group", [0, -1, 1.5, True, [0, 0], [1], "2"], ids=str)
def test_a_unit_that_is_none_is_refuted(certificate, group, tmp_path):
    data = copy.deepcopy(certificate)
    data["question"]["releases"][0]["group"] = group
    lines, status = proved_again(data, tmp_path)
    is_number = type(group) is int or group == [0, 0]
    expected = (1, "refuted: question: ") if is_number else (2, "not readable: ")
    assert status == expected[0] and lines[-1].startswith(expected[1]), lines


def test_a_file_that_is_none(tmp_path):
    for text in (
        "",
        "{}",
        "[1]",
        '{"dpsub_certificate": 1}',
        '{"dpsub_certificate": 1, "claim": 3}',
    ):
        path = tmp_path / "c.json"
        path.write_text(text)
        lines, status = verify(str(path))
        assert status == 2, text
        assert len(lines) == 1


def test_what_is_not_known_is_said(certificate, tmp_path):
    data = copy.deepcopy(certificate)
    data["upper"]["forward"][0]["theorem"] = "99"
    data["claim"]["lower"] = None
    lines, status = proved_again(data, tmp_path)
    assert (lines[-1], status) == ("not covered: theorem 99", 3)


def test_an_end_that_is_not_claimed(certificate, tmp_path):
    data = copy.deepcopy(certificate)
    data["claim"]["lower"], data["lower"] = None, None
    lines, status = proved_again(data, tmp_path)
    assert lines[1:] == ["lower: nothing claimed", "verified"]
    assert status == 0
