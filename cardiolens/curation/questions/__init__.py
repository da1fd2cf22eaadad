"""Reports to questions: sections, findings, truth, checks, drafts, automatic verification (protocol 9)."""
