"""What a job asks of a cluster: at each attempt twice as much as before, within what the partition gives to one job.

REQUIRED INPUTS: workflow/resources.yaml; the partition's limits in DPSUB_MAX_MEM_MB and DPSUB_MAX_RUNTIME, if any
OUTPUTS: `memory` and `minutes`, for the resources mem_mb and runtime of a rule
"""

from dpsub.reproduce import settings

NEEDS = settings.read(ROOT / "workflow/resources.yaml")


def grown(resource, first, attempt):
    """Return what an attempt asks for, 1 being the first one."""
    asked = first * 2 ** (attempt - 1)
    return min(asked, int(os.environ.get(f"DPSUB_MAX_{resource.upper()}") or asked))


def first(resource, wildcards):
    return {**NEEDS["default"], **NEEDS["experiments"].get(wildcards.get("experiment"), {})}[resource]


def memory(wildcards, attempt):
    return grown("mem_mb", first("mem_mb", wildcards), attempt)


def minutes(wildcards, attempt):
    return grown("runtime", first("runtime", wildcards), attempt)
