"""Every statistic of one arm: subtasks, sequences and tiers, with their references (protocol 3.3, 8)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.counting import (
    EXTRA_METRICS,
    Cells,
    Key,
    Part,
    best_constant,
    best_constant_report,
    option_flags,
    part_values,
    skill,
    tier_values,
)
from cardiolens.score.statistics.item_scores import item_mean
from cardiolens.score.statistics.items import Bools, Floats, Ints, Items, Reports
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, ENTROPY_DEFICIT, mean_defined, ratio
from cardiolens.score.statistics.statistic import TIERS, Basis, Resampling, Scopes, Statistic, mean_of

CORRECTED, EXACT = "corrected_accuracy", "exact_answers"
SET_ACCURACY = "set_accuracy"
OF_SETS = ("hit", "set_precision", "set_recall", "set_f1")
FIELD_METRICS = (SET_ACCURACY, *OF_SETS)
_CHANNELS: dict[str, Callable[[metrics.Sums], dict[str, Floats]]] = {
    "fields": metrics.of_fields,
    "text": metrics.of_text,
}
_Statistics = dict[Key, Statistic]
_PartValues = Sequence[tuple[Part, Mapping[str, Floats]]]
_Exact = tuple[Bools, Ints, Ints]  # which items are answered exactly, their gold answer and patient


def arm_statistics(answers: Answers, sampling: Resampling) -> _Statistics:
    """Compute the statistics of every subtask, sequence and tier from the answers of one arm."""
    values = _values(Cells.of(answers, sampling.patients), sampling)
    min_n = sampling.settings.min_n
    statistics = _subtasks(answers.items, values, sampling)
    statistics |= _tiers(answers, values, min_n) | dict(_means(statistics, answers.items, min_n))
    statistics |= _reports(answers.reports, sampling) | _corrected(answers, sampling)
    statistics |= {
        ("primary.skill", scope): Statistic(
            skill(statistics["primary", scope].values, constant.values), constant.basis
        )
        for (metric, scope), constant in statistics.items()
        if metric == "primary.constant"
    }
    return statistics | dict(_fields(answers.items, sampling))


def claimed_statistics(answers: Answers, cells: Cells, sampling: Resampling) -> _Statistics:
    """The statistics of tiers that may be compared between arms."""
    return _tiers(answers, _values(cells, sampling), sampling.settings.min_n)


def _values(cells: Cells, sampling: Resampling) -> _PartValues:
    sums = cells.resampled(sampling.weights)
    return [(part, part_values(part, of_part)) for part, of_part in zip(cells.parts, sums, strict=True)]


def _subtasks(items: Items, values: _PartValues, sampling: Resampling) -> _Statistics:
    """Scores, best constants and indices of collapse of every choice subtask."""
    statistics: _Statistics = {}
    for part, of_part in values:
        if part.kind == "report":
            continue
        rows = items.where(items.subtask == part.subtask)
        basis = Basis.of(rows)
        found = {"primary": of_part["primary"]}
        if part.kind != "set":
            found |= _of_confusion(part, rows, sampling)
        found |= {f"{name}.constant": value for name, value in _constants(part, rows, sampling).items()}
        bases = {"primary": basis, "macro_f1": basis.of_classes(rows)}
        if part.kind == "set":  # shares of single options
            bases["primary"] = replace(basis, n_entities=int(np.bitwise_count(rows.gold).sum()))
        statistics |= {
            (name, f"subtask:{part.subtask}"): Statistic(value, bases.get(name, basis))
            for name, value in found.items()
        }
    return statistics


def _constants(part: Part, items: Items, sampling: Resampling) -> dict[str, Floats]:
    options = [items.gold >> bit & 1 for bit in range(items.size)]
    by_patient = metrics.by_patient([*options, np.ones(len(items))], items.patient, sampling.patients)
    counts = by_patient @ sampling.weights.T
    return best_constant(part, counts[:-1], counts[-1])


def _of_confusion(part: Part, items: Items, sampling: Resampling) -> dict[str, Floats]:
    """Indices of collapse and macro-F1 of a subtask with one right option."""
    units, weights, size = sampling.patients, sampling.weights, items.size
    predicted = np.where(items.parsed == 0, size, _first_bit(items.parsed))
    cell = _first_bit(items.gold) * (size + 1) + predicted
    places = items.patient * size * (size + 1) + cell
    by_patient = np.bincount(places, minlength=units * size * (size + 1)).reshape(units, -1)
    # resamples lie next to each other in memory: sums over cells then run along them, six times as fast
    sums = (by_patient.T.astype(np.float64) @ weights.T).reshape(size, size + 1, len(weights))
    confusion = np.moveaxis(sums, -1, 0)
    hits = np.diagonal(confusion[..., :-1], axis1=-2, axis2=-1)
    f1 = ratio(2 * hits, confusion[..., :-1].sum(axis=-2) + confusion.sum(axis=-1))
    return metrics.of_confusion(confusion) | {"macro_f1": mean_defined(f1[..., list(part.classes)])}


def _first_bit(masks: Ints) -> Ints:
    return np.asarray(np.log2(np.maximum(masks, 1)), np.int64)


def _tiers(answers: Answers, values: _PartValues, min_n: int) -> _Statistics:
    """The scores of tiers, and on tiers 1 and 3 how answers are given."""
    statistics = {
        key: Statistic(value, _tier_basis(answers, [part for part, _ in values], key, min_n))
        for key, value in tier_values(values, min_n).items()
    }
    if any(part.tier == 1 for part, _ in values) and ("primary", "tier:1") not in statistics:
        _, basis = _enough(answers.items.where(answers.items.tier == 1), min_n)
        statistics["primary", "tier:1"] = mean_of([], basis)
    return statistics


def _tier_basis(answers: Answers, parts: Sequence[Part], key: Key, min_n: int) -> Basis:
    metric, tier = key
    if tier == "tier:2":
        reports = answers.reports.of_fields
        return Basis.of_entities(reports, f"mean over {' '.join(map(str, np.unique(reports.subtask)))}")
    of_tier = [part for part in parts if f"tier:{part.tier}" == tier]
    names = [part.subtask for part in of_tier if metric not in EXTRA_METRICS or part.has(metric)]
    items = answers.items.where(np.isin(answers.items.subtask, names))
    if tier == "tier:1":
        sufficient, basis = _enough(items, min_n)
        items = items.where(np.isin(items.subtask, sufficient))
    elif metric == "primary":
        return Basis.of(items, f"macro_f1 of {_together(names)}").of_classes(items)
    else:
        basis = Basis.of(items, f"{metric} of {' and '.join(names)}")
    if metric in (CRITERION, D_PRIME):  # z values of rates are known by the rarer answers
        return replace(basis, n_effective=metrics.effective_patients_of_calls(items))
    return basis


def _enough(items: Items, min_n: int) -> tuple[list[str], Basis]:
    """Return the subtasks with at least min_n items, and a basis with the others in its note."""
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    sufficient, insufficient = subtasks[sizes >= min_n], subtasks[sizes < min_n]
    note = f"mean of {counted(len(sufficient), 'subtask')}"
    if len(insufficient):
        note += f", without {' '.join(insufficient)} (fewer than {min_n} items)"
    return list(map(str, sufficient)), Basis.of(items.where(np.isin(items.subtask, sufficient)), note)


def _together(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) > 1 else f"{names[0]} alone"


def _means(statistics: Mapping[Key, Statistic], items: Items, min_n: int) -> Iterator[tuple[Key, Statistic]]:
    """Means over subtasks: scores of sequences, best constants of sequences and tiers, entropy deficits."""

    def mean(metric: str, subtasks: Sequence[str], basis: Basis) -> Statistic:
        keys = [(metric, f"subtask:{subtask}") for subtask in subtasks]
        return mean_of([statistics[key] for key in keys if key in statistics], basis)

    first, third = (items.where(items.tier == tier) for tier in (1, 3))
    for sequence in np.unique(first.sequence):
        names, basis = _enough(first.where(first.sequence == sequence), min_n)
        for metric in ("primary", "primary.constant"):
            yield (metric, f"sequence:{sequence}"), mean(metric, names, basis)
    if len(first):
        for metric, rows in (
            ("primary.constant", first),
            (ENTROPY_DEFICIT, first.where(first.answer_type != "multi")),
        ):
            names, basis = _enough(rows, min_n)
            yield (metric, TIERS[0]), mean(metric, names, basis)
    if names := list(map(str, np.unique(third.subtask))):
        for metric, of, words in (
            ("primary.constant", "macro_f1.constant", "macro_f1"),
            ("accuracy", "primary", "accuracy"),
            (ENTROPY_DEFICIT, ENTROPY_DEFICIT, ENTROPY_DEFICIT),
        ):
            basis = Basis.of(third, f"{words} of {_together(names)}")
            basis = basis.of_classes(third) if words == "macro_f1" else basis
            yield (metric, TIERS[2]), mean(of, names, basis)


def _reports(reports: Reports, sampling: Resampling) -> _Statistics:
    """Scores of each report subtask; their unweighted means over sequences are those of tier 2.

    `primary` repeats `entity_f1`, with the best constant report where the forms hold the subtask.
    """
    statistics: _Statistics = {}
    for channel, of_sums in _CHANNELS.items():
        rows = reports.where(reports.channel == channel)
        by_subtask = {}
        for subtask in map(str, np.unique(rows.subtask)):
            own = rows.where(rows.subtask == subtask)
            sums, basis = _sums(own.counts, own, sampling).T, Basis.of_entities(own)
            by_name = dict(zip(own.names, sums, strict=True))
            of_subtask = {name: Statistic(value, basis) for name, value in of_sums(by_name).items()}
            if channel == "fields":
                of_subtask["primary"] = of_subtask["entity_f1"]
                if (form := sampling.settings.forms.get(subtask)) is not None:
                    options = _sums(option_flags(form, own.entities, own.gold), own, sampling)
                    right = by_name["tp"] + by_name["fn"]
                    constant = best_constant_report(form, options, by_name["reports"], right)
                    of_subtask["primary.constant"] = Statistic(constant, Basis.of(own))
            by_subtask[subtask] = of_subtask
        basis = Basis.of_entities(rows, f"mean over {' '.join(by_subtask)}")
        for metric in next(iter(by_subtask.values()), {}):
            parts = {subtask: of_subtask[metric] for subtask, of_subtask in by_subtask.items()}
            statistics |= {(metric, f"subtask:{subtask}"): part for subtask, part in parts.items()}
            statistics[metric, "tier:2"] = mean_of(list(parts.values()), basis)
    return statistics


def _sums(counts: Floats | Bools, reports: Reports, sampling: Resampling) -> Floats:
    """Sums of counts (report, name) over the patients of each resample."""
    by_patient = np.zeros((sampling.patients, counts.shape[1]))
    np.add.at(by_patient, reports.patient, counts)
    return sampling.weights @ by_patient


def _corrected(answers: Answers, sampling: Resampling) -> _Statistics:
    """Corrected accuracy and the share of exact answers by tier.

    Corrected is (EM - c) / (1 - c), with EM the share of items answered exactly and c what guessing by
    prevalence is expected to get on the same items: the sum over answers of their squared shares. It is k for
    a reader that knows an item with probability k and else guesses by prevalence. Both are means over
    subtasks, in tier 2 over fields; subtasks with fewer than min_n items, or with a single gold answer, are
    left out of both.
    """
    statistics: _Statistics = {}
    for tier in TIERS:
        rows = answers.of_tier(tier)
        if isinstance(rows, Items):
            questions, what = (
                _exact_items(rows, sampling.settings.min_n if tier == TIERS[0] else 1),
                "subtasks",
            )
        else:
            questions, what = _exact_fields(rows), "fields"
        pairs = [
            (item_mean(right.astype(np.float64), patient, sampling.weights), chance)
            for right, gold, patient in questions
            if (chance := chance_accuracy(gold)) < 1
        ]
        if pairs:
            basis = Basis.of(rows, f"mean over {len(pairs)} {what}")
            exact = np.stack([share for share, _ in pairs], axis=-1)
            guessed = np.array([chance for _, chance in pairs])
            statistics[CORRECTED, tier] = Statistic(mean_defined((exact - guessed) / (1 - guessed)), basis)
            statistics[EXACT, tier] = Statistic(mean_defined(exact), basis)
    return statistics


def _exact_items(items: Items, least: int) -> Iterator[_Exact]:
    """The items of each subtask that has as many as `least`."""
    for subtask in np.unique(items.subtask):
        own = items.where(items.subtask == subtask)
        if len(own) >= least:
            yield own.gold == own.parsed, own.gold, own.patient


def _exact_fields(fields: Reports) -> Iterator[_Exact]:
    """Each field of a report as an item; in an unparsed report all are wrong."""
    of_entity = np.array([name.partition(": ")[0] for name in fields.entities])
    for subtask in np.unique(fields.subtask):
        own = fields.where(fields.subtask == subtask)
        read = own.parse_status == "ok"
        for name in dict.fromkeys(of_entity.tolist()):
            gold, said = (flags[:, of_entity == name] for flags in (own.gold, own.predicted))
            kind = np.unique(gold, axis=0, return_inverse=True)[1].ravel()
            yield (gold == said).all(axis=1) & read, kind, own.patient


def chance_accuracy(gold: Ints) -> float:
    """Expected accuracy of answers sampled from the gold answers."""
    _, counts = np.unique(gold, return_counts=True)
    return float(((counts / len(gold)) ** 2).sum())


def field_scopes(catalogue: Catalogue) -> Scopes:
    """Return the scopes of each subtask of tier 1: itself, its view, its type and its protocol.

    Empty for a protocol with subtasks that share views.
    """
    fields = [subtask for subtask in catalogue.subtasks.values() if subtask.tier == 1]
    if not any(subtask.only_routed for subtask in fields):
        return {}
    return {
        subtask.id: (
            f"subtask:{subtask.id}",
            *((f"view:{subtask.route[0][0]}", f"type:{subtask.answer_type}") if subtask.only_routed else ()),
            f"protocol:{catalogue.asked_by[subtask.id][0]}",
        )
        for subtask in fields
    }


def _fields(items: Items, sampling: Resampling) -> Iterator[tuple[Key, Statistic]]:
    """Scores of fields as the authors' public program has them: means over items, by scope.

    The exact set counts as right. Hit, precision, recall and F1 are of fields that take several options.
    """
    by_scope: dict[str, list[str]] = {}
    for subtask, scopes in sampling.settings.scopes.items():
        for scope in scopes:
            by_scope.setdefault(scope, []).append(subtask)
    for scope, subtasks in by_scope.items():
        rows = items.where(np.isin(items.subtask, subtasks))
        sets = rows.where(rows.answer_type == "multi")
        measures = [(SET_ACCURACY, rows, (rows.gold == rows.parsed).astype(np.float64))]
        if not scope.startswith("subtask:"):
            measures += [(name, sets, values) for name, values in zip(OF_SETS, set_scores(sets), strict=True)]
        for name, of_items, values in measures:
            if len(of_items):
                mean = item_mean(values, of_items.patient, sampling.weights)
                yield (name, scope), Statistic(mean, Basis.of(of_items))


def set_scores(sets: Items) -> tuple[Floats, Floats, Floats, Floats]:
    """Return hit, precision, recall and F1 of each item; a reply that names no option has 0."""
    right, picked, true = (
        np.bitwise_count(masks).astype(np.float64)
        for masks in (sets.gold & sets.parsed, sets.parsed, sets.gold)
    )
    precision = right / np.maximum(picked, 1)
    return (right > 0).astype(np.float64), precision, right / true, 2 * right / (picked + true)
