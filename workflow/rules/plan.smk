"""The plan of the run, from the configuration and the registries.

REQUIRED INPUTS: `config`
OUTPUTS: PLAN and the functions with which the rules look into it
"""

import json

from snakemake.exceptions import WorkflowError

from dpsub.reproduce import configuration
from dpsub.errors import DpsubError
from dpsub.reproduce.papers import errata_files
from dpsub.reproduce.plan import Plan

try:
    PLAN = Plan(configuration.validate(config))
except DpsubError as problem:
    raise WorkflowError(str(problem)) from None

RESULTS = str(PLAN.results)
PRODUCTS = {product.artefact.identifier: product for product in PLAN.products}
PARTS = {(part.experiment, part.variant, part.part): part for name in PLAN.experiments for part in PLAN.parts(name)}


def data_files(*experiments):
    return {name: str(PLAN.data_file(name)) for name in PLAN.data_sets(*experiments)}


def targets():
    """Return the files of each target that has a name."""
    return {
        name: shown(product.files.values()) for product in PLAN.products for name in (product.target, *product.aliases)
    }


def everything():
    files = [path for paths in targets().values() for path in paths]
    files += shown(PLAN.records(*PLAN.experiments))
    return [*files, rules.check_verdicts.output, rules.write_report.output, rules.describe_run.output]
