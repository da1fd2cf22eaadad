"""From verdicts to scores with intervals."""
