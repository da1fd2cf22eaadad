"""From a hospital's export to a benchmark that can be released: ingest, masks, questions, review, release."""
