"""The plan of a run, from its configuration."""

from dpsub.errors import DpsubError
from dpsub.reproduce import configuration, published
from dpsub.reproduce.experiments import REGISTRY as EXPERIMENTS
from dpsub.reproduce.papers import errata_files, papers
from dpsub.reproduce.plan import Plan, identify

try:
    PLAN = Plan(configuration.validate(config))
except DpsubError as problem:
    raise WorkflowError(str(problem)) from None

RESULTS = str(PLAN.results)
DATA = {name: str(PLAN.data_file(name)) for name in PLAN.data_sets(*PLAN.experiments)}
DATA_CHOICES = PLAN.config["data"]
TIMED = [name for name in PLAN.experiments if EXPERIMENTS.get(name).timed]
UNTIMED = [name for name in PLAN.experiments if name not in TIMED]
PRODUCTS = {product.artefact.identifier: product for product in PLAN.products}
PARTS = {
    (part.experiment, part.part): part for name in PLAN.experiments for part in PLAN.parts(name)
}


def everything():
    files = [path for product in PLAN.products for path in shown(product.files.values())]
    return [
        *files,
        *shown(PLAN.records(*PLAN.experiments)),
        rules.check_verdicts.output,
        rules.write_report.output,
    ]


def refused(name):
    """Stop with the sentence that says what an ambiguous name could be."""
    try:
        return identify(name)
    except DpsubError as problem:
        # Snakemake prints a traceback below any other error of an input function.
        raise SystemExit(str(problem)) from None


def part_of(wildcards):
    """Return the replicates of one job; an error if it is not in the plan."""
    part = PARTS.get((wildcards.experiment, wildcards.part))
    if part is None:
        raise WorkflowError(
            f"the plan has no part {wildcards.part} of {wildcards.experiment}; choose one of its parts"
        )
    return part


def product_of(wildcards):
    return PRODUCTS[wildcards.artefact]


def printed_numbers(artefact):
    """Return the files of printed numbers that an artefact is compared with or quotes."""
    names = {artefact.name, *(quote.artefact for quote in artefact.quotes())}
    folder = papers()[artefact.paper].folder / "published"
    return [
        str(folder / f"{name}.csv")
        for name in sorted(names & set(published.artefacts(artefact.paper)))
    ]


def code_of(*made):
    """Return the digest of the code that builds artefacts."""
    modules = sorted({type(artefact).__module__ for artefact in made})
    return provenance.digest(*modules, "dpsub.reproduce.artefact", "dpsub.reproduce.records")


def of_kind(kind, timed):
    """Return the products of one kind; tables of results and of clock times may share a name."""
    products = PLAN.products
    return [
        one
        for one in products
        if (one.artefact.kind == "figure", one.artefact.timed) == (kind == "figure", timed)
    ]


def pattern(kind, timed, role):
    """Return the path of one file of artefacts of a kind; the wildcard stands for paper and name."""
    for product in of_kind(kind, timed):
        path = product.files[role]
        return str(path.parent.parent / f"{{artefact}}{path.suffix}")
    return f"{RESULTS}/{kind}-{timed}/{{artefact}}.{role}"  # no such artefact in this plan


def names(kind, timed=False):
    return one_of(product.artefact.identifier for product in of_kind(kind, timed))


def listed(path, category):
    """Register a file for Snakemake's own report."""
    labels = {"artefact": "{artefact}", "format": Path(path).suffix[1:]}
    return report(path, caption="../report/artefact.rst", category=category, labels=labels)


def category_of(artefact):
    """Return where an artefact stands in Snakemake's own report."""
    if artefact.timed:
        return "Clock times"
    return "Figures" if artefact.kind == "figure" else "Tables"
