"""The configuration of a run: YAML files merged, and checked against the settings of all registered
experiments."""

from __future__ import annotations

import importlib
import importlib.util
import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, create_model

from dpsub import checks
from dpsub.errors import PlanError
from dpsub.reproduce.experiments import REGISTRY
from dpsub.reproduce.papers import asked, papers
from dpsub.reproduce.settings import (
    WHERE_ONLY,
    Closed,
    DataSettings,
    FolderName,
    Group,
    Listed,
    Name,
    Seed,
    bare,
    conform,
    known,
    merge,
    plain,
)
from dpsub.reproduce.yaml_files import read

SEED = 20231220
"""The root seed of the known verdicts."""


def load(paths: Iterable[Path]) -> dict[str, Any]:
    """Return the configuration in the files `paths`, later ones over earlier ones, as
    :func:`validate` does.

    Raises
    ------
    PlanError
        As `yaml_files.read` and :func:`validate`.
    """
    merged: dict[str, Any] = {}
    for path in paths:
        merged = merge(merged, read(path))
    return validate(merged)


def validate(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the whole configuration that `config` stands for, in canonical form, with the settings
    of each experiment.

    An experiment takes its published settings, over these what `shared` says of the groups that its
    paper shares, and over these its own entry in `experiments`; null there leaves it out, as does a
    paper that `papers` does not name. With `size: smoke` both stand over what the papers' own
    `smoke.yaml` say.

    Raises
    ------
    PlanError
        With the path of the first offending key, the rule, what came, and the nearest known key or
        value.
    """
    # Checked before the experiments: which of them are there depends on `papers` and `size`.
    head = conform(_head(), config)
    if head.size == "smoke":
        # the user's settings override the small sizes, as they do the published ones
        head = conform(_head(), merge(_smallest(asked(head.papers, smoke=True)), config))
    own, shared = head.experiments, plain(head.shared)
    made = asked(head.papers, smoke=head.size == "smoke")
    unknown = sorted(set(own) - set(REGISTRY.names()))
    if unknown:
        near = checks.nearest(unknown[0], REGISTRY.names())
        raise PlanError(f"unknown configuration key {f'experiments.{unknown[0]}'!r}; {near}")
    chosen: dict[str, Any] = {}
    for name, experiment in REGISTRY.members().items():
        over = own.get(name, {})
        # Null leaves an experiment out; a paper that is not made takes all of its own with it.
        if over is None or experiment.paper not in made:
            continue
        if isinstance(over, Mapping):
            # The nearer setting wins: published, then shared, then the experiment's own.
            over = merge(_shared(experiment.Settings, shared.get(experiment.paper) or {}), over)
        typed = experiment.settings(over)
        # Variants are names of the whole package; which of them an experiment knows is its own.
        beyond = sorted(set(typed.variants) - set(experiment.variants))
        if beyond:
            listed = ", ".join(experiment.variants)
            raise PlanError(
                f"experiments.{name}.variants must be among {listed}, got {beyond[0]!r}"
            )
        replicates = experiment().replicates(typed)
        # A part without a replicate would be a job that writes an empty record.
        if typed.parts > replicates:
            raise PlanError(
                f"experiments.{name}.parts must be at most the number of replicates = "
                f"{replicates}, got parts = {typed.parts}"
            )
        chosen[name] = plain(typed)
    return {
        **plain(head, exclude={"experiments", "shared"}),
        "shared": shared,
        "experiments": chosen,
    }


def _smallest(keys: Iterable[str]) -> dict[str, Any]:
    """Return `shared` and `experiments` of the files `smoke.yaml` of all papers, each about its own
    paper.

    Raises
    ------
    PlanError
        If a file says something else, or speaks of what is not its paper's.
    """
    smallest: dict[str, Any] = {"shared": {}, "experiments": {}}
    for key in keys:
        path = papers()[key].folder / "smoke.yaml"
        small = read(path) if path.exists() else {}
        # A smoke.yaml cannot make another paper small: papers come and go as folders.
        theirs = {name for name, kind in REGISTRY.members().items() if kind.paper == key}
        allowed = (("", smallest), ("shared", groups(key)), ("experiments", theirs))
        for part, known_names in allowed:
            inside = small.get(part) or {} if part else small
            if not isinstance(inside, Mapping):
                raise PlanError(
                    f"{part} of papers/{key}/smoke.yaml must be a mapping of keys to "
                    "values; mend it"
                )
            if unknown := sorted(set(inside) - set(known_names)):
                what = f"{part}.{unknown[0]}" if part else unknown[0]
                near = checks.nearest(unknown[0], sorted(known_names))
                raise PlanError(
                    f"unknown configuration key {what!r} in papers/{key}/smoke.yaml; {near}"
                )
        if small.get("shared"):
            smallest["shared"][key] = small["shared"]
        smallest["experiments"] |= small.get("experiments") or {}
    return smallest


def check_results_dir(folder: str) -> None:
    """Refuse a results folder in which the working folder lies, whose files the results would mix
    with.

    Raises
    ------
    PlanError
    """
    # Results among the files of the project could not be told from them, or removed without them.
    if Path.cwd().is_relative_to(Path(folder).resolve()):
        raise PlanError(
            f"results_dir must be a folder of its own, got {folder!r}, in which the project lies; "
            "name a new folder, such as results-mine"
        )


def of_experiment(config: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the settings of one experiment without those that only say how much of it is computed,
    and where."""
    settings = config["experiments"][name]
    return {key: value for key, value in settings.items() if key not in WHERE_ONLY}


def schema() -> dict[str, Any]:
    """Return the JSON schema of a configuration, for editors."""
    return _whole().model_json_schema()


@cache
def groups(paper: str) -> dict[str, type[Group]]:
    """Return the groups of settings that experiments of a paper share."""
    name = f"dpsub.papers.{paper}.settings"
    # A paper need not share any settings.
    if importlib.util.find_spec(name) is None:
        return {}
    kinds = dict[str, type[Group]]()
    for kind in vars(importlib.import_module(name)).values():
        # imported classes belong to another module
        if isinstance(kind, type) and issubclass(kind, Group) and kind.__module__ == name:
            kinds[kind.key()] = kind
    return kinds


def _shared(model: type[BaseModel], said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values `said` of groups as settings of `model`, which inherits the groups,
    or whose parts do."""
    merged: dict[str, Any] = {}
    # From the base to the class itself, so that a nearer group overrides one further away.
    for kind in reversed(model.__mro__):
        # one of its name may be another experiment's
        if issubclass(kind, Group) and kind is not Group:
            theirs = said.get(kind.key()) or {}
            own = {key: value for key, value in theirs.items() if key in kind.model_fields}
            merged = merge(merged, own)
    for name, field in model.model_fields.items():
        kind = bare(field.annotation)
        if isinstance(kind, type) and issubclass(kind, Closed) and (inside := _shared(kind, said)):
            merged = merge(merged, {name: inside})
    return merged


def _head_fields() -> dict[str, Any]:
    paper = Annotated[str, known("paper", papers)]
    return {
        "seed": (Seed, SEED),
        "results_dir": (
            FolderName,
            Field(
                "results",
                description="Folder of everything that is made; relative to the working one.",
            ),
        ),
        "verdicts": (
            Literal["enforce", "report"],
            Field(
                "enforce",
                description="enforce: a verdict at published settings that differs from the "
                "expected one "
                "stops the run; report: it is only shown.",
            ),
        ),
        "papers": (
            Listed[paper] | None,
            Field(
                None,
                description="Keys of papers; null: all, at published size without those "
                "made apart.",
            ),
        ),
        "size": (
            Literal["published", "smoke"],
            Field(
                "published",
                description="smoke: over the published settings stands what the smoke.yaml of each "
                "paper "
                "says, then `shared` and `experiments`.",
            ),
        ),
        "artefacts": (
            Listed[Name] | None,
            Field(
                None,
                description="Tables and figures (table1, demo/figure1, ...); null: all of "
                "the experiments.",
            ),
        ),
        "container": (
            str | None,
            Field(None, description="Image for jobs where Snakemake is told to use one."),
        ),
        "data": (DataSettings, Field(DataSettings(), description="Where data sets come from.")),
        "shared": (
            _shared_groups(),
            Field(
                {},
                description="Over the published values of the groups that experiments of one "
                "paper share.",
                validate_default=True,
            ),
        ),
    }


def _partial(paper: str) -> Any:
    """Model of overrides: any of a paper's groups, and any of their settings, without the checks
    between settings."""
    fields: dict[str, Any] = {}
    for group, kind in groups(paper).items():
        inside: dict[str, Any] = {
            # Every setting of an override is optional; what it says about others is checked in the
            # experiment.
            key: (field.rebuild_annotation() | None, None)
            for key, field in kind.model_fields.items()
        }
        name, summary = f"{kind.__name__}Overrides", (kind.__doc__ or "").partition("\n")[0]
        overrides: Any = create_model(name, __config__=Closed.model_config, **inside)
        fields[group] = (overrides | None, Field(None, description=summary))
    return create_model(f"Shared_{paper}", __config__=Closed.model_config, **fields)


def _shared_groups() -> Any:
    fields: dict[str, Any] = {
        key: (_partial(key) | None, Field(None, description=f"Groups of settings of {key}."))
        for key in papers()
        if groups(key)
    }
    return create_model("Shared", __config__=Closed.model_config, **fields)


@cache
def _head() -> type[BaseModel]:
    """Model of all but the experiments, which take their defaults from what it has accepted."""
    fields = _head_fields()
    # Kept as it came: an entry is checked against the settings of its own experiment.
    fields["experiments"] = (dict[str, Any], {})
    return create_model("Head", __base__=Closed, **fields)


@cache
def _whole() -> type[BaseModel]:
    """Model of a configuration."""
    of_experiments: dict[str, Any] = {
        name: (
            kind.Settings | None,
            Field(None, description=(kind.__doc__ or name).partition("\n")[0]),
        )
        for name, kind in REGISTRY.members().items()
    }
    experiments = create_model("Experiments", __base__=Closed, **of_experiments)
    fields = _head_fields()
    fields["experiments"] = (
        experiments,
        Field(
            {},
            description="Over the published settings, by experiment; null leaves one out.",
        ),
    )
    return create_model("Configuration", __base__=Closed, **fields)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1, ensure_ascii=False))
