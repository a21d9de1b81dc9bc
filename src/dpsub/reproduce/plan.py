"""The plan of a run: the records, tables and figures that a configuration asks for, and their
files.

Everything that is made follows from the configuration and the registries, never from looking into
folders, so that a missing file is an error and not a smaller table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from dpsub import checks
from dpsub.data.dataset import REGISTRY as DATA_SETS
from dpsub.errors import PlanError
from dpsub.reproduce import artefacts, configuration, experiments, provenance
from dpsub.reproduce.artefact import Artefact, OutputDirs, printed_rows, setting_values
from dpsub.reproduce.claims import Claims
from dpsub.reproduce.papers import asked, papers
from dpsub.reproduce.settings import WHERE_ONLY
from dpsub.reproduce.tables import Table


@dataclass(frozen=True)
class RecordPart:
    """One job's share of an experiment: replicates `first`, ..., `stop` - 1 of all its variants."""

    experiment: str
    part: str
    first: int
    stop: int


@dataclass(frozen=True)
class Product:
    """A table, figure or set of claims that the run makes, and the files that it consists of, by
    role."""

    artefact: Artefact
    files: Mapping[str, Path]


class Plan:
    """Plan of one validated configuration.

    Parameters
    ----------
    config : mapping
        As `dpsub.reproduce.configuration.validate` returns it.

    Raises
    ------
    PlanError
        If `artefacts` names one that does not exist, or whose experiments are not configured; or if
        `results_dir` holds the working folder, whose files the results would mix with.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.config = config
        self.results = Path(config["results_dir"])
        configuration.check_results_dir(str(self.results))
        self.products = self._products()

    def _products(self) -> tuple[Product, ...]:
        configured, folders = set(self.config["experiments"]), OutputDirs.under(self.results)
        # In the order of `declared`: papers by rank, then tables before figures.
        known = [Product(artefact, folders.files(artefact)) for artefact in declared()]
        if self.config["artefacts"] is None:
            made = asked(self.config["papers"], smoke=self.config["size"] == "smoke")
            return tuple(
                product
                for product in known
                # Left out in silence only where nobody named it.
                if product.artefact.paper in made
                and configured.issuperset(product.artefact.experiments)
            )
        chosen = set()
        for name in self.config["artefacts"]:
            try:
                identifier = identify(name)
            except PlanError as problem:
                raise PlanError(f"artefacts: {problem}") from None
            (artefact,) = (
                product.artefact for product in known if product.artefact.identifier == identifier
            )
            # one that is named must be made: to leave it out in silence would look like success
            if lacking := sorted(set(artefact.experiments) - configured):
                raise PlanError(
                    f"artefacts: {name} needs the experiment {lacking[0]}; configure "
                    f"it, or omit {name}"
                )
            chosen.add(identifier)
        return tuple(product for product in known if product.artefact.identifier in chosen)

    @property
    def targets(self) -> dict[str, Product]:
        """Targets that the user may ask for, by name: "demo/table1", and "table1" where no other
        paper has one."""
        # Counted over all artefacts, made or not: a short name must not change its meaning with the
        # configuration.
        short = Counter(artefact.name for artefact in declared())
        targets = {product.artefact.identifier: product for product in self.products}
        for product in self.products:
            if short[product.artefact.name] == 1:
                targets[product.artefact.name] = product
        return targets

    @property
    def ambiguous(self) -> set[str]:
        """Short names that artefacts of several papers have; `identify` refuses them."""
        return {product.artefact.name for product in self.products} - set(self.targets)

    @cached_property
    def changed(self) -> tuple[str, ...]:
        """Experiments that do not run at their published settings."""
        changed = []
        for name in self.experiments:
            kind = experiments.REGISTRY.get(name)
            settings = configuration.of_experiment(self.config, name)
            # Fewer variants give fewer numbers, so that such a run is not the published one either.
            all_variants = set(self.variants(name)) == set(kind.variants)
            if not all_variants or settings != _of_numbers(kind.defaults()):
                changed.append(name)
        return tuple(changed)

    @cached_property
    def published(self) -> list[str]:
        """Artefacts whose records are all made at published settings and with the seed of the
        known verdicts."""
        if self.config["seed"] != configuration.SEED:
            return []
        unchanged = set()
        for name in self.experiments:
            # an experiment that reads records of a changed one is changed, too
            read = {name, *experiments.REGISTRY.get(name).needs_records}
            if read.isdisjoint(self.changed):
                unchanged.add(name)
        return [
            product.artefact.identifier
            for product in self.products
            if unchanged.issuperset(product.artefact.experiments)
        ]

    @property
    def remark(self) -> str:
        """Remark that a reader of this run must know first; empty for a run at published
        settings."""
        rest = len(self.products) - len(self.published)
        if not rest:
            return ""
        if self.config["seed"] != configuration.SEED:
            return (
                f"the verdicts that are known are those of the seed {configuration.SEED}, got "
                f"{self.config['seed']}: verdicts are shown, not enforced; one on random draws "
                "may differ by chance."
            )
        more = f" and {len(self.changed) - 3} more" if len(self.changed) > 3 else ""
        return (
            f"{rest} of {len(self.products)} tables, figures and lists of claims are not made at "
            f"published settings ({', '.join(self.changed[:3])}{more}): their verdicts are shown, "
            "not enforced; differs or fails may mean no more than that."
        )

    @cached_property
    def experiments(self) -> tuple[str, ...]:
        """Experiments to run: those that an artefact reads, and those whose records such
        an experiment reads."""
        # Only what is shown is computed.
        needed = {name for product in self.products for name in product.artefact.experiments}
        for name in tuple(needed):
            needed.update(experiments.REGISTRY.get(name).needs_records)
        return tuple(name for name in self.config["experiments"] if name in needed)

    def parts(self, experiment: str) -> tuple[RecordPart, ...]:
        """Return the jobs of one experiment, in order."""
        chosen = self.config["experiments"][experiment]
        kind = experiments.REGISTRY.get(experiment)
        replicates, count = kind().replicates(kind.settings(chosen)), chosen["parts"]
        # Parts differ by one replicate at most, and follow from the configuration alone.
        bounds = [replicates * i // count for i in range(count + 1)]
        return tuple(
            RecordPart(experiment, f"{i + 1}-of-{count}", bounds[i], bounds[i + 1])
            for i in range(count)
        )

    def folder_of_records(self, experiment: str) -> Path:
        """Return the folder of an experiment's records; clock times are kept apart."""
        # Clock times differ from run to run and must not stand among files that are compared.
        timed = experiments.REGISTRY.get(experiment).timed
        return self.results / ("run/timings/records" if timed else "records") / experiment

    def record(self, part: RecordPart) -> Path:
        """Return the record file of one job."""
        return self.folder_of_records(part.experiment) / f"{part.part}.parquet"

    def records(self, *names: str) -> list[Path]:
        """Return the record files of the experiments `names`."""
        return [self.record(part) for name in names for part in self.parts(name)]

    def data_sets(self, *names: str) -> tuple[str, ...]:
        """Return the data sets that the experiments `names` read."""
        configured = self.config["experiments"]
        data_sets: set[str] = set()
        for kind in map(experiments.REGISTRY.get, names):
            data_sets.update(kind().data_of(kind.settings(configured[kind.name])))
        return tuple(sorted(data_sets))

    def data_file(self, data_set: str) -> Path:
        """Return the prepared file of a data set; each results folder has its own, as its
        configuration may differ."""
        # Two results folders may prepare a data set in different ways.
        tag = re.sub(r"[^A-Za-z0-9._-]+", "-", str(self.results)).strip("-") or "results"
        return Path("data/interim") / tag / f"{data_set}{DATA_SETS.get(data_set).suffix}"

    def settings_of(self, artefact: Artefact) -> dict[str, Any]:
        """Return the settings that are compared with what the paper printed, by experiment."""
        # Only settings that a paper printed: an artefact must not be made again for the others.
        compared = {path.partition(".")[0] for path in artefact.settings.values()}
        names = sorted(compared & set(self.config["experiments"]))
        return {name: configuration.of_experiment(self.config, name) for name in names}

    def config_digest(self, experiment: str) -> str:
        """Return the digest of all that the configuration says about an experiment's numbers."""
        chosen = configuration.of_experiment(self.config, experiment)
        variants = self.variants(experiment)
        return provenance.settings_digest(
            {"seed": self.config["seed"], "variants": variants, **chosen}
        )

    def variants(self, experiment: str) -> list[str]:
        """Return the variants of an experiment that are computed."""
        return list(self.config["experiments"][experiment]["variants"])


@cache
def declared() -> tuple[Artefact, ...]:
    """Return all artefacts of all papers, in their order, each compared with what the
    experiments declare.

    Raises
    ------
    DataError
        If what an artefact declares is not printed, a printed number has a key that it does not
        declare, or a setting that it compares is not there.
    PlanError
        If a table or a claim names an unknown experiment or record column.
    """
    made = [kind() for kind in artefacts.REGISTRY.members().values()]
    known = experiments.REGISTRY.members()
    columns = {name: kind.columns for name, kind in known.items()}
    for artefact in made:
        if isinstance(artefact, Table | Claims):
            artefact.check(columns)
        printed_rows(artefact)
        if artefact.settings:
            read = {path.partition(".")[0] for path in artefact.settings.values()}
            setting_values(artefact, {name: known[name].defaults() for name in read & set(known)})

    def place(artefact: Artefact) -> tuple[Any, ...]:
        return papers()[artefact.paper].order, _natural(artefact.name)

    return tuple(sorted(made, key=place))


def identify(name: str) -> str:
    """Return the identifier ("demo/table1") of the artefact of this name, the short one ("table1")
    where it is unique.

    Raises
    ------
    PlanError
        If there is no such artefact, or if several papers have one of this name.
    """
    known = [artefact.identifier for artefact in declared()]
    called_so = [
        identifier for identifier in known if name in (identifier, identifier.partition("/")[2])
    ]
    if len(called_so) > 1:
        listed = ", ".join(called_so)
        raise PlanError(f"{name!r} is the name of several artefacts; say which: {listed}")
    if not called_so:
        names = [*known, *(identifier.partition("/")[2] for identifier in known)]
        raise PlanError(f"unknown artefact {name!r}; {checks.nearest(name, names)}")
    return called_so[0]


def _of_numbers(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in WHERE_ONLY}


def _natural(name: str) -> tuple[str, int, str]:
    """Return the sort key that puts tables before figures, and table9 before table10."""
    parts = re.fullmatch(r"(\D*)(\d*)(.*)", name)
    prefix, number, rest = parts.groups() if parts else (name, "", "")
    # Tables, figures, supplementary figures, then what has no number, as a paper has them.
    order = {"table": "0", "figure": "1", "figureS": "2"}
    return order.get(prefix, f"3{prefix}"), int(number or 0), rest
