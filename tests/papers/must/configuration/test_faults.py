"""Every bad configuration is refused before any work, in one sentence that names the key, the rule
and the way out."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpsub.errors import PlanError
from dpsub.reproduce import configuration, yaml_files
from dpsub.reproduce.plan import Plan
from tests.workflow import runs

CONFIG = runs.ROOT / "config.yaml"
WHOLE = yaml_files.read(CONFIG)

BOMB = "a0: &a0 [1]\n" + "".join(
    f"a{i + 1}: &a{i + 1} [{', '.join([f'*a{i}'] * 9)}]\n" for i in range(12)
)
"""A few lines that stand for 9**12 numbers."""

# (path of the key, its value, the message)
FAULTS: list[tuple[str, Any, str]] = [
    ("sede", 1, "unknown configuration key 'sede'; did you mean 'seed'?"),
    ("data.fallbak", "error", "unknown configuration key 'data.fallbak'; did you mean 'fallback'?"),
    (
        "experiments.linear_regresion",
        {"parts": 1},
        "unknown configuration key 'experiments.linear_regresion'; did you mean "
        "'linear_regression'?",
    ),
    (
        "experiments.linear_regression.iteration",
        10,
        "unknown configuration key 'experiments.linear_regression.iteration'; did you mean "
        "'iterations'?",
    ),
    (
        "experiments.noise_calibration.tables.table5",
        {},
        "unknown configuration key 'experiments.noise_calibration.tables.table5'; did you mean "
        "'table8'?",
    ),
    ("papers", ["musst"], "unknown paper 'musst' in papers[0]; did you mean 'must'?"),
    ("shared.musst", {}, "unknown configuration key 'shared.musst'; did you mean 'must'?"),
    (
        "shared.must.experiment4",
        {},
        "unknown configuration key 'shared.must.experiment4'; did you mean 'experiment",
    ),
    ("shared.must.experiment2.m", 0, "shared.must.experiment2.m must be at least 1, got 0"),
    ("shared.must.experiment2.b", 5000, "experiments.linear_regression: b must be "),
    ("seed", -1, "seed must be at least 0, got -1"),
    ("seed", "abc", 'seed must be a whole number, got "abc"'),
    ("seed", 1.5, "seed must be a whole number, got 1.5"),
    ("seed", True, "seed must be a whole number, got true"),
    ("results_dir", "", "results_dir must not be empty"),
    (
        "results_dir",
        "a{b}",
        'results_dir must not hold braces, angle brackets or control characters, got "a{b}"; ',
    ),
    (
        "results_dir",
        "a<b>",
        "results_dir must not hold braces, angle brackets or control characters, got ",
    ),
    (
        "results_dir",
        "a\nb",
        "results_dir must not hold braces, angle brackets or control characters, got ",
    ),
    (
        "data.folder",
        "a\0b",
        "data.folder must not hold braces, angle brackets or control characters, got ",
    ),
    ("verdicts", "enforced", "unknown value \"enforced\" of verdicts; did you mean 'enforce'?"),
    (
        "data.fallback",
        "syntetic",
        "unknown value \"syntetic\" of data.fallback; did you mean 'synthetic'?",
    ),
    ("data.download", "yes", 'data.download must be true or false, got "yes"'),
    ("data", [], "data must be a mapping of keys to values, got []"),
    ("artefacts", ["table99"], "artefacts: unknown artefact 'table99'; did you mean 'table9'?"),
    ("artefacts", ["table1"], "artefacts: 'table1' is the name of several artefacts; say which: "),
    ("artefacts", [], "artefacts must have at least 1 value(s), got 0"),
    (
        "experiments.amplification_grid.samplers",
        ["wor", "must_wo2"],
        "unknown sampler 'must_wo2' in experiments.amplification_grid.samplers[1]; did you mean "
        "'must_wo'?",
    ),
    (
        "experiments.amplification_grid.mechanisms",
        ["laplase"],
        "unknown mechanism 'laplase' in experiments.amplification_grid.mechanisms[0]; did you mean "
        "'laplace'?",
    ),
    (
        "experiments.amplification_grid.samplers",
        ["wor", "wor"],
        'experiments.amplification_grid.samplers must not repeat a value, got ["wor", "wor"]',
    ),
    (
        "experiments.amplification_grid.schemes",
        ["wor"],
        "unknown configuration key 'experiments.amplification_grid.schemes'; did you mean "
        "'samplers'?",
    ),
    (
        "experiments.peer_bounds.cases",
        [{"scheme": "poisson"}],
        "unknown configuration key 'experiments.peer_bounds.cases[0].scheme'; did you mean "
        "'sampler'?",
    ),
    (
        "experiments.amplification_grid.samplers",
        ["multistage"],
        "experiments.amplification_grid: a multistage sampler has no default stages; ",
    ),
    (
        "experiments.linear_regression.variants",
        ["told"],
        'unknown value "told" of experiments.linear_regression.variants[0]; known: stated, '
        "as_done, consistent",
    ),
    (
        "experiments.amplification_grid.variants",
        ["as_done"],
        "experiments.amplification_grid.variants must be among stated, got 'as_done'",
    ),
    (
        "experiments.linear_regression.m",
        0,
        "experiments.linear_regression.m must be at least 1, got 0",
    ),
    (
        "experiments.linear_regression.m",
        -5,
        "experiments.linear_regression.m must be at least 1, got -5",
    ),
    (
        "experiments.adult_logistic.replicates",
        0,
        "experiments.adult_logistic.replicates must be at least 1, got 0",
    ),
    (
        "experiments.linear_regression.clip",
        0,
        "experiments.linear_regression.clip must be above 0, got 0",
    ),
    (
        "experiments.linear_regression.clip",
        math.nan,
        "experiments.linear_regression.clip must be finite, got nan",
    ),
    (
        "experiments.linear_regression.clip",
        math.inf,
        "experiments.linear_regression.clip must be finite, got inf",
    ),
    (
        "experiments.linear_regression.epsilon_amplified",
        [0.01, -0.1],
        "experiments.linear_regression.epsilon_amplified[1] must be above 0, got -0.1",
    ),
    (
        "experiments.linear_regression.epsilon_amplified",
        0.01,
        "experiments.linear_regression.epsilon_amplified must be a list, got 0.01",
    ),
    (
        "experiments.linear_regression.beta",
        [1, 2],
        "experiments.linear_regression.beta must have at least 3 value(s), got 2",
    ),
    (
        "experiments.subset_statistics.epsilon_amplified",
        0,
        "experiments.subset_statistics.epsilon_amplified must be above 0, got 0",
    ),
    (
        "experiments.design_surface.epsilon",
        -1,
        "experiments.design_surface.epsilon must be above 0, got -1",
    ),
    (
        "experiments.composition.table8.epsilon",
        0,
        "experiments.composition.table8.epsilon must be above 0, got 0",
    ),
    (
        "experiments.linear_regression.parts",
        201,
        "experiments.linear_regression.parts must be at most the number of replicates = 200, got "
        "parts = 201",
    ),
    ("experiments.linear_regression.b", 5000, "experiments.linear_regression: b must be "),
    ("experiments.linear_regression.m", 5000, "experiments.linear_regression: "),
    ("experiments.linear_regression.b", 50, "experiments.linear_regression: "),
    ("experiments.subset_statistics.b", [500], "experiments.subset_statistics: b must be "),
    (
        "experiments.subset_statistics.upper",
        -5,
        "experiments.subset_statistics: upper must be above -4",
    ),
    (
        "experiments.distinct_counts.settings",
        [{"n": 30, "b": 50, "m": 3}],
        "experiments.distinct_counts: b must be ",
    ),
    ("experiments.amplification_grid.b", 1001, "experiments.amplification_grid: b must be "),
    ("experiments.design_surface.b_max", 1500, "experiments.design_surface: b must be "),
    ("experiments.composition.table8.b", 40000, "experiments.composition: b must be "),
    (
        "experiments.noise_calibration.tables.table6.b",
        2000,
        "experiments.noise_calibration: b must be ",
    ),
    ("experiments.composition.table8.grid_size", 3, "experiments.composition: "),
]


def changed(path: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(WHOLE)
    *above, last = path.split(".")
    place = config
    for key in above:
        place = place.setdefault(key, {})
    place[last] = value
    return config


@pytest.mark.parametrize(
    ("path", "value", "message"), FAULTS, ids=[f"{path}={value}" for path, value, _ in FAULTS]
)
def test_a_bad_value_is_refused_in_a_sentence(path: str, value: Any, message: str) -> None:
    with pytest.raises(PlanError) as refusal:
        Plan(configuration.validate(changed(path, value)))
    text = str(refusal.value)
    assert text.startswith(message)
    assert "\n" not in text


def test_the_configuration_itself_is_accepted() -> None:
    assert configuration.load([CONFIG])["seed"] == WHOLE["seed"]


def test_a_missing_setting_is_named() -> None:
    config = changed("experiments.peer_bounds.cases", [{"sampler": "wor", "m": 3}])
    with pytest.raises(
        PlanError,
        match=r"^experiments\.peer_bounds\.cases\[0\]\.noise_multiplier "
        r"is missing; add it$",
    ):
        configuration.validate(config)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a:\n  b: 1\n  c: 2\n  b: 3\n", r"is not valid YAML at line 4: key 'b' comes twice$"),
        ("a: {b: 1,\n  b: 2}\n", r"is not valid YAML at line 2: key 'b' comes twice$"),
        ("a: 2001-13-45\n", r"is not valid YAML at line 1: a tag does not fit its value$"),
        ("seed: 1\nseed: 2\n", r"is not valid YAML at line 2: key 'seed' comes twice$"),
        ("seed: [1\n", r"is not valid YAML at line 2: "),
        ("- 1\n", r"must hold a mapping of keys to values, got list$"),
        ("1: 2\n", r"is not valid YAML at line 1: key 1 is not text$"),
        (
            "seed: !!python/object/apply:os.system ['true']\n",
            r"is not valid YAML at line 1: could "
            r"not determine",
        ),
        ("? [a]\n: 1\n", r"is not valid YAML at line 1: "),
        ("a: 1\nb: !!bool x\n", r"is not valid YAML at line 2: a tag does not fit its value$"),
        ("a: !!timestamp x\n", r"is not valid YAML at line 1: a tag does not fit its value$"),
        ("a: 1\nb: \0\n", r"is not valid YAML at line 2: unacceptable character"),
        ("[" * 30000, r"is not valid YAML: maximum recursion depth exceeded"),
        ("a: &a [*a]\n", r"must hold at most 100000 values, got more; mend its aliases$"),
        (BOMB, r"must hold at most 100000 values, got more; mend its aliases$"),
    ],
)
def test_a_damaged_file_is_refused_and_nothing_in_it_is_executed(
    text: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "odd.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(PlanError, match=message):
        yaml_files.read(path)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        PlanError,
        match=r"missing\.yaml cannot be read \(No such file or "
        r"directory\)",
    ):
        yaml_files.read(tmp_path / "missing.yaml")
    for odd in ("/dev/zero", tmp_path):
        with pytest.raises(PlanError, match="cannot be read: a file is needed, got the "):
            yaml_files.read(odd)
    (tmp_path / "latin.yaml").write_bytes(b"results_dir: \xe9\n")
    with pytest.raises(PlanError, match=r"latin\.yaml must be UTF-8 text"):
        yaml_files.read(tmp_path / "latin.yaml")


def test_a_number_that_yaml_reads_as_text_gets_a_hint() -> None:
    config = changed("experiments.linear_regression.learning_rate", yaml.safe_load("1e-3"))
    with pytest.raises(PlanError, match=r'must be a number, got "1e-3"; write it without quotes'):
        configuration.validate(config)


def test_an_artefact_without_its_experiment_is_refused() -> None:
    config = changed("experiments.linear_regression", None) | {"artefacts": ["table7"]}
    with pytest.raises(
        PlanError,
        match=r"^artefacts: table7 needs the experiment "
        r"linear_regression;",
    ):
        Plan(configuration.validate(config))


def test_it_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    bad = runs.config(
        tmp_path / "bad.yaml",
        papers=["must"],
        artefacts=["must/table7"],
        experiments={"linear_regression": {"n": 100, "b": 500}},
    )
    status, output = runs.run(tmp_path / "run", configs=(runs.TINY, bad))
    assert status == 1
    assert (
        "\nerror: experiments.linear_regression: b must be " in output and "Traceback" not in output
    )
    assert not (tmp_path / "run" / runs.RESULTS).exists()


def test_snakemake_does_not_take_the_last_of_two_keys(tmp_path: Path) -> None:
    twice = tmp_path / "twice.yaml"
    twice.write_text("seed: 1\nsize: smoke\nseed: 2\n", encoding="utf-8")
    status, output = runs.run(tmp_path / "run", configs=(runs.TINY, twice))
    assert status == 1 and "Traceback" not in output
    assert f"the configuration {twice} is not valid YAML at line 3: key 'seed' comes" in output
    assert not (tmp_path / "run" / runs.RESULTS).exists()
