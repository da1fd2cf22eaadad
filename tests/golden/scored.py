# ruff: noqa

"""Goldens of what is printed: verdicts, scores and comparisons of simulated runs."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from page_run import finished, full_spec
from small_cohort import make_cohort

from bench.claims import BETTER, arms_of, findings, verdicts
from cardiolens.storage import documents, schemas, tables
from tests.golden.planned import digest

EVIDENCE = ("metric", "scope", "arm_id", "versus_arm_id")
NUMBERS = ("value", "low", "high", "n_items", "n_patients")
GONE = {  # metrics that nothing read
    *("abnormal_call", "accuracy.constant", "accuracy.skill", "balanced_accuracy", "call_entropy"),
    *("effective_classes", "exact_match", "gold_cardinality", "gold_entropy", "gwet_ac1", "jaccard", "kappa"),
    *("accuracy.uniform", "accuracy.prevalence", "macro_f1.uniform", "macro_f1.prevalence"),
    *("macro_f1.constant", "macro_f1.skill", "mean_rank_error", "micro_f1", "micro_f1.constant"),
    *("micro_f1.skill", "micro_f1.uniform", "micro_f1.prevalence", "modal_set_share", "option_macro_f1"),
    *("sample_f1", "select_all", "select_first_only", "weighted_kappa", "within_one", "text_shortcut"),
    *("entity_f1.constant", "entity_f1.uniform", "entity_f1.prevalence"),
}
COLUMNS = (
    *("difference", "low", "high", "low_90", "high_90", "p", "p_adjusted", "within_p", "within_p_adjusted"),
    *("beyond_p", "beyond_p_adjusted", "n_patients", "n_items", "n_same_request", "n_dropped", "low_bound"),
    *("high_bound", "read_difference", "n_read", "spread", "next_low", "next_high", "n_models_above"),
)


def page(folder: Path) -> dict[str, Any]:
    """Verdicts, scores and comparisons of the fixture of the page's tests: two readers, sixteen arms."""
    run = finished(full_spec(make_cohort(folder, 24)))
    judged = tables.read(run.verdicts, schemas.VERDICTS)
    order = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]
    rows = judged.select(["arm_id", "qa_id", "channel", "parse_status", "parsed", "gold"]).sort_by(order)
    prompts = {arm["arm_id"]: arm["prompt"] for arm in documents.read_manifest(run)["arms"]}
    return {
        "verdicts": digest(rows.to_pylist()),
        **results(tables.read(run.scores, schemas.SCORES).to_pylist(), prompts),
    }


def claims(_: Path) -> dict[str, Any]:
    """Scores and decisions of `bench/claims.py`: three experiments without effect, three with one."""
    null = arms_of(("clinical", "random@1", "kcenter"), ("8", "32"), ("standard", "reasoning"))
    power = arms_of(("clinical",), ("16",), ("standard", "reasoning"))
    models = arms_of(("clinical", "random@1"), ("8", "16"), ("standard",), ("a", "b", "c"))
    made = {}
    for name, arms, patients, better in (
        ("null", null, 40, 0.0),
        ("power", power, 80, BETTER),
        ("models", models, 40, 0.0),
    ):
        for seed in range(3):
            rows = verdicts(arms, patients, np.random.default_rng([3, seed]), better=better)
            _, scores = findings(arms, rows, 60, 200)
            made[f"{name} {seed}"] = results(scores, {arm.arm_id: arm.prompt for arm in arms})
    return made


def results(rows: list[dict[str, Any]], prompts: dict[str, str]) -> dict[str, Any]:
    """Sums of the scores of single arms and of comparisons by metric, tier scores in full, and decisions."""
    single = [row for row in rows if row["versus_arm_id"] is None and row["metric"] not in GONE]
    single = [row for row in single if (row["metric"], row["scope"]) != ("collapse_index", "tier:1")]
    single = [row for row in single if (row["metric"] != "accuracy") or row["scope"].startswith("tier:")]
    sums: dict[str, list[float]] = {}
    for row in single:
        key = [row[name] for name in ("metric", "scope", "arm_id")]
        add(sums.setdefault(row["metric"], [0.0] * 6), key, [row[name] for name in NUMBERS])
    tiers = sorted(
        [row["scope"], row["arm_id"], *(_plain(row[name]) for name in NUMBERS)]
        for row in single
        if row["metric"] == "primary" and row["scope"].startswith("tier:")
    )
    compared: dict[str, dict[str, list[float]]] = {}
    decisions: Counter[str] = Counter()
    for key, values in wide(rows, prompts):
        for name, value in values.items():
            if name in COLUMNS:
                sums_of = compared.setdefault(key[-1], {}).setdefault(name, [0.0, 0.0])
                add(sums_of, list(key), [value])
        decisions[f"{key[-1]}: {values['decision']}, {values['margin']}"] += 1
    return {"sums": sums, "tiers": tiers, "compared": compared, "decisions": dict(sorted(decisions.items()))}


def add(sums: list[float], key: list[Any], values: list[Any]) -> None:
    """Add defined values with a weight that their place decides, and count them."""
    numbers = [float(value) for value in values if value is not None]
    if len(numbers) == len(values) and all(np.isfinite(numbers)):
        weight = 1 + int(digest(key), 16) % 997 / 997
        for place, number in enumerate((*numbers, 1.0)):
            sums[place] += weight * number


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def wide(rows, prompts):
    from cardiolens.score.claims import sentences
    from cardiolens.score.claims.evidence_analysis import Evidence
    from cardiolens.score.claims.landscape import declines

    EXTRA = ("mean_cardinality", "precision", "recall", "criterion", "d_prime", "severity_shift")
    by = {}
    for row in rows:
        if row["versus_arm_id"] is not None and str(row["scope"]).startswith("tier:"):
            by.setdefault((row["arm_id"], row["versus_arm_id"], row["scope"]), {})[row["metric"]] = row
    fallen = declines([r for r in rows if str(r["arm_id"]).startswith(("models:", "headline:"))])
    for (arm, versus, scope), ms in by.items():
        if arm.startswith("models:"):
            metrics = ["corrected_accuracy"]
        elif arm.startswith("headline:"):
            metrics = ["primary"]
        elif arm.startswith("pooled:"):
            metrics = ["primary", *EXTRA, "entropy_deficit"]
        else:
            metrics = ["primary", *(EXTRA if prompts.get(arm) != prompts.get(versus) else ())]
        for m in metrics:
            if m not in ms:
                continue
            row = ms[m]

            def v(name, column="value"):
                r = ms.get(name)
                return None if r is None else r[column]

            out = {"difference": row["value"], "low": row["low"], "high": row["high"]}
            out["n_patients"], out["n_items"], out["n_same_request"] = (
                row["n_patients"],
                row["n_items"],
                row["n_same_request"],
            )
            for name in (f"{m}.swap_p", f"{m}.interval_p"):
                if name in ms:
                    out["p"] = v(name)
            for name in (f"{m}.holm_p", f"{m}.fdr_p"):
                if name in ms:
                    out["p_adjusted"] = v(name)
            if f"{m}.bounds" in ms:
                b = ms[f"{m}.bounds"]
                out |= {"n_dropped": b["n_items"], "low_bound": b["low"], "high_bound": b["high"]}
            if f"{m}.read_in_both" in ms:
                out |= {
                    "read_difference": v(f"{m}.read_in_both"),
                    "n_read": v(f"{m}.read_in_both", "n_items"),
                }
            if f"{m}.between_models" in ms:
                out |= {
                    "spread": v(f"{m}.between_models"),
                    "next_low": v(f"{m}.next_model", "low"),
                    "next_high": v(f"{m}.next_model", "high"),
                }
            if f"{m}.models_above" in ms:
                out["n_models_above"] = v(f"{m}.models_above")
            margin = None
            if m == "primary" and "primary.equivalence" in ms:
                out |= {
                    "low_90": v("primary.equivalence", "low"),
                    "high_90": v("primary.equivalence", "high"),
                }
                out |= {"within_p": v("primary.equivalence_p"), "beyond_p": v("primary.beyond_p")}
                for a, b in (("within_p_adjusted", "equivalence"), ("beyond_p_adjusted", "beyond")):
                    for kind in ("holm_p", "fdr_p"):
                        if f"primary.{b}_{kind}" in ms:
                            out[a] = v(f"primary.{b}_{kind}")
                margin, _ = sentences._margin_side(
                    ms["primary.equivalence"],
                    Evidence.of(ms, "primary.equivalence"),
                    Evidence.of(ms, "primary.beyond"),
                )
            if arm.startswith("models:"):
                f = fallen.get((versus.removeprefix("models:"), arm.removeprefix("models:")))
                side = None if f is None else f.side
                out = {k: out[k] for k in ("difference", "low", "high", "n_patients", "n_items")}
            else:
                e = Evidence.of(ms, m)
                side = sentences._side(row, e) or ("explored" if sentences._is_explored(row, e) else None)
            out["decision"] = {"above": "higher", "below": "lower", None: "open"}.get(side, side)
            out["margin"] = margin
            yield (arm, versus, scope, m), out
