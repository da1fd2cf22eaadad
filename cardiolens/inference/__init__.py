"""From questions to completions: plan, models, placement, engines, the stream that keeps them busy."""
