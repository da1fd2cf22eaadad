"""Every statistic of one arm: subtasks, sequences and tiers, with their references (protocol 3.3, 8)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.bootstrap import Basis
from cardiolens.score.statistics.counting import (
    Cells,
    Key,
    Part,
    PartValues,
    best_constant,
    best_constant_report,
    cells_of,
    option_flags,
    part_values,
    skill,
    tier_values,
)
from cardiolens.score.statistics.item_scores import item_mean
from cardiolens.score.statistics.items import Answers, Bools, Floats, Ints, Items, Reports
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, ENTROPY_DEFICIT, mean_defined, ratio
from cardiolens.score.statistics.statistic import TIERS, Resampling, Scopes, Statistic, mean_of

CORRECTED, EXACT = "corrected_accuracy", "exact_answers"
SET_ACCURACY = "set_accuracy"
OF_SETS = ("hit", "set_precision", "set_recall", "set_f1")
FIELD_METRICS = (SET_ACCURACY, *OF_SETS)
_CHANNELS: dict[str, Callable[[metrics.Sums], dict[str, Floats]]] = {
    "fields": metrics.of_fields,
    "text": metrics.of_text,
}
_Statistics = dict[Key, Statistic]


def arm_statistics(answers: Answers, sampling: Resampling) -> _Statistics:
    """Compute the statistics of every subtask, sequence and tier from the answers of one arm."""
    values = _values(cells_of(answers, sampling.patients), sampling)
    statistics = _subtasks(answers.items, values, sampling)
    statistics |= _tiers(answers, values, sampling) | dict(_means(statistics, answers.items, sampling))
    statistics |= _reports(answers.reports, sampling) | dict(_corrected(answers, sampling))
    for (metric, scope), constant in [*statistics.items()]:
        if metric == "primary.constant":
            values_of = skill(statistics["primary", scope].values, constant.values)
            statistics["primary.skill", scope] = Statistic(values_of, constant.basis)
    return statistics | dict(_fields(answers.items, sampling))


def claimed_statistics(answers: Answers, cells: Cells, sampling: Resampling) -> _Statistics:
    """The statistics of tiers that may be compared between arms."""
    return _tiers(answers, _values(cells, sampling), sampling)


def _values(cells: Cells, sampling: Resampling) -> PartValues:
    return {part: part_values(part, of_part @ sampling.weights.T) for part, of_part in cells.items()}


def _subtasks(items: Items, values: PartValues, sampling: Resampling) -> _Statistics:
    """Scores, best constants and indices of collapse of every choice subtask."""
    statistics: _Statistics = {}
    for part, of_part in values.items():
        if part.kind == "report":
            continue
        rows = items.where(items.subtask == part.subtask)
        basis = sampling.basis(rows)
        found = {"primary": of_part["primary"]}
        if part.kind == "set":  # shares of single options
            bases = {"primary": replace(basis, n_entities=int(np.bitwise_count(rows.gold).sum()))}
        else:
            found |= _of_confusion(part, rows, sampling)
            bases = {"macro_f1": basis.of_classes(rows)}
        *options, n_items = sampling.sums(
            [*(rows.gold >> bit & 1 for bit in range(rows.size)), np.ones(len(rows))], rows.patient
        )
        constants = best_constant(part, np.stack(options), n_items)
        found |= {f"{name}.constant": value for name, value in constants.items()}
        statistics |= {
            (name, f"subtask:{part.subtask}"): Statistic(value, bases.get(name, basis))
            for name, value in found.items()
        }
    return statistics


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


def _tiers(answers: Answers, values: PartValues, sampling: Resampling) -> _Statistics:
    """The scores of tiers, and on tiers 1 and 3 how answers are given."""
    statistics: _Statistics = {}
    for (metric, tier), value in tier_values(values, sampling.settings.min_n).items():
        names = [part.subtask for part, of in values.items() if f"tier:{part.tier}" == tier and metric in of]
        items = answers.items.where(np.isin(answers.items.subtask, names))
        if tier == TIERS[1]:
            basis = sampling.basis_of_entities(answers.reports.of_fields, f"mean over {' '.join(names)}")
        elif tier == TIERS[0]:
            items, basis = _enough(items, sampling)
        elif metric == "primary":
            basis = sampling.basis(items, f"macro_f1 of {_together(names)}").of_classes(items)
        else:
            basis = sampling.basis(items, f"{metric} of {' and '.join(names)}")
        if metric in (CRITERION, D_PRIME):  # z values of rates are known by the rarer answers
            basis = replace(basis, n_effective=metrics.effective_patients_of_calls(items))
        statistics[metric, tier] = Statistic(value, basis)
    if any(part.tier == 1 for part in values) and ("primary", TIERS[0]) not in statistics:
        _, basis = _enough(answers.items.where(answers.items.tier == 1), sampling)
        statistics["primary", TIERS[0]] = mean_of([], basis)
    return statistics


def _enough(items: Items, sampling: Resampling) -> tuple[Items, Basis]:
    """The items of subtasks with at least min_n of them, and their basis with the others in its note."""
    min_n = sampling.settings.min_n
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    sufficient, insufficient = subtasks[sizes >= min_n], subtasks[sizes < min_n]
    note = f"mean of {counted(len(sufficient), 'subtask')}"
    if len(insufficient):
        note += f", without {' '.join(insufficient)} (fewer than {min_n} items)"
    enough = items.where(np.isin(items.subtask, sufficient))
    return enough, sampling.basis(enough, note)


def _together(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) > 1 else f"{names[0]} alone"


def _means(
    statistics: Mapping[Key, Statistic], items: Items, sampling: Resampling
) -> Iterator[tuple[Key, Statistic]]:
    """Means over subtasks: scores of sequences, best constants of sequences and tiers, entropy deficits."""

    def mean(metric: str, rows: Items, basis: Basis) -> Statistic:
        keys = [(metric, f"subtask:{subtask}") for subtask in np.unique(rows.subtask)]
        return mean_of([statistics[key] for key in keys if key in statistics], basis)

    first, third = (items.where(items.tier == tier) for tier in (1, 3))
    for sequence in np.unique(first.sequence):
        enough = _enough(first.where(first.sequence == sequence), sampling)
        for metric in ("primary", "primary.constant"):
            yield (metric, f"sequence:{sequence}"), mean(metric, *enough)
    if len(first):
        yield ("primary.constant", TIERS[0]), mean("primary.constant", *_enough(first, sampling))
        one_right = first.where(first.answer_type != "multi")
        yield (ENTROPY_DEFICIT, TIERS[0]), mean(ENTROPY_DEFICIT, *_enough(one_right, sampling))
    if len(third):
        of = f"of {_together(np.unique(third.subtask).tolist())}"
        of_classes = sampling.basis(third, f"macro_f1 {of}").of_classes(third)
        yield ("primary.constant", TIERS[2]), mean("macro_f1.constant", third, of_classes)
        yield ("accuracy", TIERS[2]), mean("primary", third, sampling.basis(third, f"accuracy {of}"))
        deficit = sampling.basis(third, f"{ENTROPY_DEFICIT} {of}")
        yield (ENTROPY_DEFICIT, TIERS[2]), mean(ENTROPY_DEFICIT, third, deficit)


def _reports(reports: Reports, sampling: Resampling) -> _Statistics:
    """Scores of each report subtask; their unweighted means over sequences are those of tier 2.

    `primary` repeats `entity_f1`, with the best constant report where the forms hold the subtask.
    """
    statistics: _Statistics = {}
    for channel, of_sums in _CHANNELS.items():
        rows = reports.where(reports.channel == channel)
        by_subtask = {}
        for subtask, own in rows.by_subtask():
            sums = dict(zip(own.names, sampling.sums(own.counts.T, own.patient), strict=True))
            basis = sampling.basis_of_entities(own)
            of_subtask = {name: Statistic(value, basis) for name, value in of_sums(sums).items()}
            if channel == "fields":
                of_subtask["primary"] = of_subtask["entity_f1"]
                if (form := sampling.settings.forms.get(subtask)) is not None:
                    options = sampling.sums(option_flags(form, own.entities, own.gold).T, own.patient).T
                    constant = best_constant_report(form, options, sums["reports"], sums["tp"] + sums["fn"])
                    of_subtask["primary.constant"] = Statistic(constant, sampling.basis(own))
            by_subtask[subtask] = of_subtask
        basis = sampling.basis_of_entities(rows, f"mean over {' '.join(by_subtask)}")
        for metric in next(iter(by_subtask.values()), {}):
            parts = {subtask: of_subtask[metric] for subtask, of_subtask in by_subtask.items()}
            statistics |= {(metric, f"subtask:{subtask}"): part for subtask, part in parts.items()}
            statistics[metric, "tier:2"] = mean_of(list(parts.values()), basis)
    return statistics


def _corrected(answers: Answers, sampling: Resampling) -> Iterator[tuple[Key, Statistic]]:
    """Corrected accuracy and the share of exact answers by tier.

    Corrected is (EM - c) / (1 - c), with EM the share of items answered exactly and c what guessing by
    prevalence is expected to get on the same items: the sum over answers of their squared shares. It is k for
    a reader that knows an item with probability k and else guesses by prevalence. Both are means over
    subtasks, in tier 2 over fields; subtasks with fewer than min_n items, or with a single gold answer, are
    left out of both.
    """
    for tier, least in zip(TIERS, (sampling.settings.min_n, 1, 1), strict=True):
        rows = answers.of_tier(tier)
        exact, guessed = [], []
        for right, gold, patient in _exact(rows, least):
            if (chance := chance_accuracy(gold)) < 1:
                exact.append(item_mean(right.astype(np.float64), patient, sampling.weights))
                guessed.append(chance)
        if exact:
            what = "fields" if isinstance(rows, Reports) else "subtasks"
            basis = sampling.basis(rows, f"mean over {len(exact)} {what}")
            shares, chances = np.stack(exact, axis=-1), np.array(guessed)
            yield (CORRECTED, tier), Statistic(mean_defined((shares - chances) / (1 - chances)), basis)
            yield (EXACT, tier), Statistic(mean_defined(shares), basis)


def _exact(rows: Items | Reports, least: int) -> Iterator[tuple[Bools, Ints, Ints]]:
    """Yield which items of each subtask are answered exactly, with the gold answer and patient of each.

    A subtask has as many as `least`. Of reports each field is an item; of unparsed ones all are wrong.
    """
    for _, own in rows.by_subtask():
        if isinstance(own, Reports):
            read = own.parse_status == "ok"
            of_entity = np.array([name.partition(": ")[0] for name in own.entities])
            for name in dict.fromkeys(of_entity.tolist()):
                gold, said = (flags[:, of_entity == name] for flags in (own.gold, own.predicted))
                kind = np.unique(gold, axis=0, return_inverse=True)[1].ravel()
                yield (gold == said).all(axis=1) & read, kind, own.patient
        elif len(own) >= least:
            yield own.gold == own.parsed, own.gold, own.patient


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
                yield (name, scope), Statistic(mean, sampling.basis(of_items))


def set_scores(sets: Items) -> tuple[Floats, Floats, Floats, Floats]:
    """Return hit, precision, recall and F1 of each item; a reply that names no option has 0."""
    right, picked, true = (
        np.bitwise_count(masks).astype(np.float64)
        for masks in (sets.gold & sets.parsed, sets.parsed, sets.gold)
    )
    precision = right / np.maximum(picked, 1)
    return (right > 0).astype(np.float64), precision, right / true, 2 * right / (picked + true)
