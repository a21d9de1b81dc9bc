"""Write the whole configuration of a run, and the environment in which it runs.

By hand: python workflow/scripts/describe_run.py --settings "$(cat config.json)" --config c.yaml --environment e.json
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
from pathlib import Path

import one_sentence
import yaml

from dpsub.reproduce import provenance
from dpsub.reproduce.records import replace_file


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", required=True, type=json.loads, metavar="JSON")
    parser.add_argument("--commit", default="unknown", help="of the code that runs")
    parser.add_argument("--config", required=True, type=Path)
    parser.add_argument("--environment", required=True, type=Path)
    options = parser.parse_args()
    installed = {found.metadata["Name"]: found.version for found in importlib.metadata.distributions()}
    environment = {
        "commit": options.commit,
        "versions": provenance.versions(),
        "installed": dict(sorted(installed.items(), key=lambda item: item[0].lower())),
        "volatile": {"platform": platform.platform(), "cpus": os.cpu_count()},
    }
    text = yaml.safe_dump(options.settings, sort_keys=False, allow_unicode=True)
    replace_file(options.config, text.encode())
    replace_file(options.environment, f"{json.dumps(environment, indent=1, ensure_ascii=False)}\n".encode())


if __name__ == "__main__":
    one_sentence.run(main)
