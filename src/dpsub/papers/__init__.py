"""The papers, one folder each: settings, experiments, tables, figures, claims, printed numbers,
errata, conclusions."""
