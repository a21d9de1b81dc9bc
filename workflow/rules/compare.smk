"""Every printed number next to ours, and the verdicts against those that are known.

REQUIRED INPUTS: <results>/comparison/<paper>/<artefact>.csv, src/dpsub/papers/<paper>/expected_verdicts.csv
OUTPUTS: <results>/comparison.csv, <results>/run/verdicts.txt
"""


rule collect_comparison:
    input:
        shown(product.files["comparison"] for product in PLAN.products),
    output:
        f"{RESULTS}/comparison.csv",
    log:
        f"{RESULTS}/logs/collect_comparison.log",
    localrule: True
    params:
        script=script("collect_comparison.py"),
        code=code("collect_comparison.py", "dpsub.reproduce.verdicts"),
    shell:
        "exec {START} {params.script:q} --output {output:q} {input:q} > {log:q} 2>&1"


rule check_verdicts:
    input:
        comparison=rules.collect_comparison.output,
        expected=sorted(map(str, (ROOT / "src/dpsub/papers").glob("*/expected_verdicts.csv"))),
    output:
        f"{RESULTS}/run/verdicts.txt",
    log:
        f"{RESULTS}/logs/check_verdicts.log",
    localrule: True
    params:
        script=script("check_verdicts.py"),
        code=code("check_verdicts.py", "dpsub.reproduce.verdicts"),
        mode=PLAN.config["verdicts"],
        papers=str(ROOT / "src/dpsub/papers"),
    shell:
        "exec {START} {params.script:q} --comparison {input.comparison:q} --papers {params.papers:q}"
        " --mode {params.mode} --output {output:q} > {log:q} 2>&1"
