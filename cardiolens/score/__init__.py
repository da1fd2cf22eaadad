"""From completions to claims: verdicts, statistics, claims in sentences, the results of a run."""
