"""The curve of a training: a line at each checkpoint."""

CURVE = "curve.jsonl"
