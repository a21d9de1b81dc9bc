"""Reproduction of papers, from a configuration to records, tables, figures, verdicts and the
report; it names no paper."""

import gc

# Imported modules live until a job ends: with the default threshold of 700 objects, looking for
# cycles among their objects takes a tenth of a short job.
gc.set_threshold(50_000)
