"""The files of the configuration, read strictly: of a key that comes twice Snakemake would take the last, and of broken
YAML it names no line."""

from dpsub.errors import DpsubError
from dpsub.reproduce.yaml_files import read


def check_files(paths):
    """Stop at the first file that is not valid YAML, with its line."""
    for path in map(Path, paths):
        if path.suffix in (".yaml", ".yml") and path.exists():
            try:
                read(path)
            except DpsubError as problem:
                raise WorkflowError(str(problem)) from None


# of a module, its user says what the configuration is
if workflow.is_main_process and not workflow.modifier.skip_configfile:
    check_files([*workflow.configfiles, ROOT / "config.yaml"])
