"""Results of a whole run: judged replies, scores, merged runs, comparisons."""
