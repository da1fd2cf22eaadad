"""The twenty or so values of a sweep, a model and an arm by which people sort runs."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.show.page.page_data import Facts
from cardiolens.show.tracker.tracked_run import Value

Summary = dict[str, Value]
_REQUESTS = ("asked", "unique", "executed", "reused", "error", "overflow")  # counters of the manifest


def tier_name(scope: object) -> str:
    """The name of a tier's score in a summary, e.g. `tier_1`."""
    return str(scope).replace(":", "_")


@dataclass(frozen=True)
class Summaries:
    """The summaries of one run."""

    facts: Facts

    def of_sweep(self) -> Summary:
        """The highest headline, and what the sweep was and took."""
        facts = self.facts
        (manifest,) = facts.manifests
        models = [name for name in facts.models if name not in facts.simulated] or list(facts.models)
        highest = max(models, key=lambda name: _score(self.of_arm(self.scored_arm(name)), "tier_1"))
        summary: Summary = {"highest_model": highest, **self.of_arm(self.scored_arm(highest))}
        summary |= {"models": len(facts.models), "arms": len(facts.arms), "patients": facts.n_patients}
        summary |= {f"requests/{name}": manifest["requests"].get(name, 0) for name in _REQUESTS}
        summary |= {f"tokens/{name}": manifest["tokens"].get(name, 0) for name in ("prompt", "output")}
        return summary | {"seconds": sum(map(float, manifest["seconds"].values()))}

    def of_model(self, model: str) -> Summary:
        """The headline of a model on each tier, the share of its replies that was read, and its cost."""
        summary = self.of_arm(self.scored_arm(model))
        for usage in self.facts.usage:
            if usage.model == model:
                summary |= {
                    "requests/asked": usage.asked,
                    "requests/unique": usage.unique,
                    "requests/answered": usage.answered,
                    "tokens/prompt": usage.prompt_tokens,
                    "tokens/cached": usage.cached_tokens,
                    "tokens/output": usage.output_tokens,
                    "request_seconds": usage.seconds,
                }
        return summary

    def scored_arm(self, model: str) -> str:
        """The arm whose scores stand for a model: its headline, else its first arm that sees the images."""
        headline = f"{PREFIX}{model}"
        if headline in self._rows:
            return headline
        own = [arm for arm in self.facts.arms if arm.model == model]
        return next((arm.arm_id for arm in own if arm.control == "none"), own[0].arm_id)

    def of_arm(self, arm_id: str) -> Summary:
        """The score of an arm on each tier with its interval, and the share of the replies that was read."""
        rows = self._rows.get(arm_id, ())
        summary: Summary = {name: value for row in rows for name, value in _values(row)}
        items, unread = sum(_count(row, "n_items") for row in rows), sum(map(_unread, rows))
        if items:
            summary["percent_read"] = round(100 * (items - unread) / items, 2)
        return summary | {"items": items}

    @cached_property
    def _rows(self) -> Mapping[str, Sequence[AnalysisRow]]:
        """Scores on tiers by arm."""
        rows: dict[str, list[AnalysisRow]] = {}
        for row in self.facts.of_arms(["primary"], "tier:"):
            rows.setdefault(str(row["arm_id"]), []).append(row)
        return rows


def _values(row: AnalysisRow) -> Iterator[tuple[str, Value]]:
    name = tier_name(row["scope"])
    for end, column in (("", "value"), ("/low", "low"), ("/high", "high")):
        number = float(row[column])
        yield f"{name}{end}", None if math.isnan(number) else number


def _unread(row: AnalysisRow) -> int:
    return _count(row, "n_parse_error") + _count(row, "n_refusal")


def _count(row: AnalysisRow, name: str) -> int:
    return int(row[name] or 0)


def _score(summary: Mapping[str, Value], name: str) -> float:
    value = summary.get(name)
    return -math.inf if value is None or isinstance(value, str) else float(value)
