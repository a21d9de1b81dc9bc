"""From a configuration to records, tables, figures, verdicts and the report; no paper is named
here."""
