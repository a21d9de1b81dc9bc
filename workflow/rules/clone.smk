"""Where the files of this workflow are; of one that is hosted at a forge, a clone of its revision.

Snakemake fetches hosted rules and scripts one by one, but jobs need the package, too.
"""

import os
import shutil
from pathlib import Path


def cloned(source):
    """Clone the repository of a hosted file at its revision into Snakemake's own folder."""
    import git  # which Snakemake itself needs

    if hasattr(source, "hosted_repo"):
        source.fetch_if_required()
        kept = source.hosted_repo.repo  # Snakemake's own copy
    else:
        kept = git.Repo(source.repo_path)
    commit = kept.git.rev_parse(f"{source.ref}^{{commit}}")
    clone = Path.cwd() / ".snakemake/dpsub" / commit[:12]
    if not clone.is_dir():
        clone.parent.mkdir(parents=True, exist_ok=True)
        unfinished = clone.with_name(f"{clone.name}.{os.getpid()}")
        made = git.Repo.clone_from(kept.git_dir, unfinished, no_checkout=True)
        made.git.checkout("--detach", commit)
        try:
            unfinished.rename(clone)
        except OSError:  # another process was faster
            shutil.rmtree(unfinished)
    return clone


HERE = workflow.current_basedir
ROOT = cloned(HERE) if hasattr(HERE, "ref") else Path(str(HERE)).parents[1]
