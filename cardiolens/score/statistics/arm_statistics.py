"""Every statistic of one arm: subtasks, sequences and tiers, with their references (protocol 3.3, 8)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.answers import Answers, of_fields
from cardiolens.score.statistics.counting import EXTRA_METRICS, Cells, Key, Part, part_values, tier_values
from cardiolens.score.statistics.items import Bools, Floats, Ints, Items, Reports
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, ENTROPY_DEFICIT, mean_defined, ratio
from cardiolens.score.statistics.references import (
    REFERENCES,
    best_constant,
    best_constant_report,
    guesses,
    option_flags,
    report_guess_scores,
    skill,
)
from cardiolens.score.statistics.statistic import Basis, Resampling, Scopes, Statistic, mean_of

CORRECTED, EXACT = "corrected_accuracy", "exact_answers"
SET_ACCURACY = "set_accuracy"
OF_SETS = ("hit", "set_precision", "set_recall", "set_f1")
FIELD_METRICS = (SET_ACCURACY, *OF_SETS)
_WITH_REFERENCES = ("", *(f".{name}" for name in REFERENCES))
_OF_CLASSES = (CRITERION, D_PRIME)  # rates among the normal and among the abnormal weigh alike
_OVER_OPTIONS = ("primary", "precision", "recall")  # of sets: shares of single options
_CHANNELS: dict[str, Callable[[metrics.Sums], dict[str, Floats]]] = {
    "fields": metrics.of_fields,
    "text": metrics.of_text,
}
_Statistics = dict[Key, Statistic]


def arm_statistics(answers: Answers, sampling: Resampling) -> _Statistics:
    """Compute the statistics of every subtask, sequence and tier from the answers of one arm."""
    cells = Cells.of(answers, sampling.patients)
    values = [
        part_values(part, sums)
        for part, sums in zip(cells.parts, cells.resampled(sampling.weights), strict=True)
    ]
    statistics = _subtasks(answers.items, cells.parts, values, sampling)
    statistics |= _tiers(answers, cells.parts, values, sampling.min_n)
    statistics |= _references_of_scopes(statistics, answers.items, cells.parts, sampling.min_n)
    statistics |= _report_statistics(answers.reports, sampling)
    statistics |= _corrected(answers, sampling)
    return statistics | _field_statistics(answers.items, sampling)


def claimed_statistics(answers: Answers, cells: Cells, sampling: Resampling) -> _Statistics:
    """The statistics of tiers that may be compared between arms."""
    values = [
        part_values(part, sums)
        for part, sums in zip(cells.parts, cells.resampled(sampling.weights), strict=True)
    ]
    return _tiers(answers, cells.parts, values, sampling.min_n)


def _subtasks(
    items: Items, parts: Sequence[Part], values: Sequence[Mapping[str, Floats]], sampling: Resampling
) -> _Statistics:
    """Scores, references, skill and indices of collapse of every choice subtask."""
    statistics: _Statistics = {}
    for part, of_part in zip(parts, values, strict=True):
        if part.kind == "report":
            continue
        of_subtask = items.where(items.subtask == part.subtask)
        every = (
            dict(of_part)
            | _references(part, of_subtask, of_part, sampling)
            | _collapse(part, of_subtask, sampling)
        )
        every.pop("abnormal_call", None)
        basis = Basis.of(of_subtask)
        bases = dict.fromkeys(_OF_CLASSES, _of_calls(basis, of_subtask) if part.has_calls else basis)
        if part.kind == "set":
            options = int(np.bitwise_count(of_subtask.gold).sum())
            bases |= dict.fromkeys(_OVER_OPTIONS, replace(basis, n_entities=options))
        else:
            bases["macro_f1"] = basis.of_classes(of_subtask)
        scope = f"subtask:{part.subtask}"
        statistics |= {
            (name, scope): Statistic(value, bases.get(name, basis)) for name, value in every.items()
        }
    return statistics


def _references(
    part: Part, items: Items, values: Mapping[str, Floats], sampling: Resampling
) -> dict[str, Floats]:
    """References and skill of the primary score, and of a diagnosis references of macro-F1."""
    units, weights = sampling.patients, sampling.weights
    options = [items.gold >> bit & 1 for bit in range(items.size)]
    counts = metrics.by_patient([*options, np.ones(len(items))], items.patient, units) @ weights.T
    constants = best_constant(part, counts[:-1], counts[-1])
    references = {f"{metric}.constant": value for metric, value in constants.items()}
    for reader, means in guesses(part, items.gold, items.size, sampling.seed).items():
        references |= {f"{metric}.{reader}": np.array([means[metric]]) for metric in constants}
    references["primary.skill"] = skill(values["primary"], references["primary.constant"])
    return references


def _collapse(part: Part, items: Items, sampling: Resampling) -> dict[str, Floats]:
    """Indices of collapse and macro-F1 of a subtask with one right option; of sets what was not read."""
    units, weights = sampling.patients, sampling.weights
    if part.kind == "set":
        counts = (
            metrics.by_patient([items.parsed == 0, np.ones(len(items))], items.patient, units) @ weights.T
        )
        return {"unparsed": ratio(counts[0], counts[1])}
    size = items.size
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


def _of_calls(basis: Basis, items: Items) -> Basis:
    """A basis for z values of rates, which are known by the rarer answers."""
    return replace(basis, n_effective=metrics.effective_patients_of_calls(items))


def _tiers(
    answers: Answers, parts: Sequence[Part], values: Sequence[Mapping[str, Floats]], min_n: int
) -> _Statistics:
    """The scores of tiers, and on tiers 1 and 3 how answers are given."""
    statistics = {
        key: Statistic(value, _tier_basis(answers, parts, key, min_n))
        for key, value in tier_values(parts, values, min_n).items()
    }
    if any(part.tier == 1 for part in parts) and ("primary", "tier:1") not in statistics:
        _, basis = _enough(answers.items.where(answers.items.tier == 1), min_n)
        statistics["primary", "tier:1"] = mean_of([], basis)
    return statistics


def _tier_basis(answers: Answers, parts: Sequence[Part], key: Key, min_n: int) -> Basis:
    metric, tier = key
    if tier == "tier:2":
        rows = of_fields(answers.reports)
        assert isinstance(rows, Reports)
        return Basis.of_entities(rows, f"mean over {' '.join(map(str, np.unique(rows.subtask)))}")
    items = answers.items.where(answers.items.tier == int(tier[-1]))
    names = [part.subtask for part in parts if f"tier:{part.tier}" == tier]
    if metric in EXTRA_METRICS:
        names = [part.subtask for part in parts if f"tier:{part.tier}" == tier and part.has(metric)]
        items = items.where(np.isin(items.subtask, names))
    if tier == "tier:1":
        sufficient, basis = _enough(items, min_n)
        items = items.where(np.isin(items.subtask, sufficient))
    elif metric == "primary":
        return Basis.of(items, f"macro_f1 of {_together(names)}").of_classes(items)
    else:
        basis = Basis.of(items, f"{metric} of {' and '.join(names)}")
    return _of_calls(basis, items) if metric in _OF_CLASSES else basis


def _enough(items: Items, min_n: int) -> tuple[list[str], Basis]:
    """Return the subtasks with at least min_n items, and a basis whose note lists the others."""
    subtasks, sizes = np.unique(items.subtask, return_counts=True)
    sufficient, insufficient = subtasks[sizes >= min_n], subtasks[sizes < min_n]
    note = f"mean of {counted(len(sufficient), 'subtask')}"
    if len(insufficient):
        note += f", without {' '.join(insufficient)} (fewer than {min_n} items)"
    return list(map(str, sufficient)), Basis.of(items.where(np.isin(items.subtask, sufficient)), note)


def _together(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) > 1 else f"{names[0]} alone"


def _references_of_scopes(
    statistics: Mapping[Key, Statistic], items: Items, parts: Sequence[Part], min_n: int
) -> _Statistics:
    """Scores of sequences, references and skill of sequences and tiers, and further means over subtasks."""
    means: _Statistics = {}
    first = items.where(items.tier == 1)
    scopes = {f"sequence:{name}": first.where(first.sequence == name) for name in np.unique(first.sequence)}
    scopes |= {"tier:1": first} if len(first) else {}
    for scope, in_scope in scopes.items():
        sufficient, basis = _enough(in_scope, min_n)
        means |= _with_references(statistics, sufficient, "primary", basis, scope)
    if len(first):
        choices = [part.subtask for part in parts if part.kind != "set"]
        sufficient, basis = _enough(first.where(np.isin(first.subtask, choices)), min_n)
        means[ENTROPY_DEFICIT, "tier:1"] = _mean(statistics, sufficient, ENTROPY_DEFICIT, basis)
    third = items.where(items.tier == 3)
    if names := list(map(str, np.unique(third.subtask))):
        together = _together(names)
        basis = Basis.of(third, f"macro_f1 of {together}").of_classes(third)
        means |= _with_references(statistics, names, "macro_f1", basis, "tier:3")
        basis = Basis.of(third, f"accuracy of {together}")
        means["accuracy", "tier:3"] = _mean(statistics, names, "primary", basis)
        basis = Basis.of(third, f"{ENTROPY_DEFICIT} of {together}")
        means[ENTROPY_DEFICIT, "tier:3"] = _mean(statistics, names, ENTROPY_DEFICIT, basis)
    return means


def _mean(
    statistics: Mapping[Key, Statistic], subtasks: Sequence[str], metric: str, basis: Basis
) -> Statistic:
    keys = [(metric, f"subtask:{subtask}") for subtask in subtasks]
    return mean_of([statistics[key] for key in keys if key in statistics], basis)


def _with_references(
    statistics: Mapping[Key, Statistic], subtasks: Sequence[str], metric: str, basis: Basis, scope: str
) -> _Statistics:
    """Average a metric, its references and its skill over subtasks, as `primary` of a scope."""
    means = {name: _mean(statistics, subtasks, f"{metric}{name}", basis) for name in _WITH_REFERENCES}
    means[".skill"] = Statistic(skill(means[""].values, means[".constant"].values), basis)
    return {(f"primary{name}", scope): statistic for name, statistic in means.items()}


def _report_statistics(reports: Reports, sampling: Resampling) -> _Statistics:
    """Scores of each report subtask; their unweighted means over sequences are those of tier 2.

    `primary` repeats `entity_f1`, with the references of 8.3 where the forms hold the subtask.
    """
    statistics: _Statistics = {}
    for channel, of_sums in _CHANNELS.items():
        rows = reports.where(reports.channel == channel)
        by_subtask = {}
        for subtask in map(str, np.unique(rows.subtask)):
            own = rows.where(rows.subtask == subtask)
            sums, basis = _sums(own, sampling.weights), Basis.of_entities(own)
            of_subtask = {name: Statistic(value, basis) for name, value in of_sums(sums).items()}
            if channel == "fields":
                of_subtask["primary"] = of_subtask["entity_f1"]
                of_subtask |= _report_references(subtask, own, sums, sampling)
            by_subtask[subtask] = of_subtask
        basis = Basis.of_entities(rows, f"mean over {' '.join(by_subtask)}")
        for metric in next(iter(by_subtask.values()), {}):
            parts = {subtask: of_subtask[metric] for subtask, of_subtask in by_subtask.items()}
            statistics |= {(metric, f"subtask:{subtask}"): part for subtask, part in parts.items()}
            statistics[metric, "tier:2"] = mean_of(list(parts.values()), basis)
    return statistics | {
        ("primary.skill", scope): Statistic(
            skill(statistics["primary", scope].values, constant.values), constant.basis
        )
        for (metric, scope), constant in statistics.items()
        if metric == "primary.constant"
    }


def _sums(rows: Reports, weights: Floats) -> dict[str, Floats]:
    by_patient = np.zeros((weights.shape[1], len(rows.names)))
    np.add.at(by_patient, rows.patient, rows.counts)
    return dict(zip(rows.names, (weights @ by_patient).T, strict=True))


def _report_references(
    subtask: str, rows: Reports, sums: Mapping[str, Floats], sampling: Resampling
) -> dict[str, Statistic]:
    """References of the fields of one subtask; none without its form."""
    if subtask not in sampling.forms:
        return {}
    form, basis = sampling.forms[subtask], Basis.of(rows)
    gold = option_flags(form, rows.entities, rows.gold)
    right = sums["tp"] + sums["fn"]
    by_patient = np.zeros((sampling.patients, gold.shape[1]))
    np.add.at(by_patient, rows.patient, gold)
    constant = best_constant_report(form, sampling.weights @ by_patient, sums["reports"], right)
    guessed = report_guess_scores(subtask, form, gold, float(right[0]), sampling.seed)
    values = {"constant": constant} | {name: np.array([mean]) for name, mean in guessed.items()}
    return {f"primary.{name}": Statistic(value, basis) for name, value in values.items()}


def _corrected(answers: Answers, sampling: Resampling) -> _Statistics:
    """Corrected accuracy and the share of exact answers by tier (protocol 16.4).

    Corrected is (EM - c) / (1 - c), with EM the share of items answered exactly and c what guessing by
    prevalence is expected to get on the same items: the sum over answers of their squared shares. It is k for
    a reader that knows an item with probability k and else guesses by prevalence. Both are means over
    subtasks, in tier 2 over fields; subtasks with fewer than min_n items, or with a single gold answer, are
    left out of both.
    """
    items, reports = answers.items, answers.reports
    parts: dict[int, dict[str, tuple[Statistic, Statistic]]] = {1: {}, 2: {}, 3: {}}
    for subtask in map(str, np.unique(items.subtask)):
        of_subtask = items.where(items.subtask == subtask)
        if of_subtask.tier[0] == 3 or len(of_subtask) >= sampling.min_n:
            exact, gold = (of_subtask.gold == of_subtask.parsed)[:, None], of_subtask.gold[:, None]
            (pair,) = _corrected_and_exact(
                exact, gold, of_subtask.patient, sampling.weights, Basis.of(of_subtask)
            )
            parts[int(of_subtask.tier[0])] |= {subtask: pair} if pair else {}
    fields = reports.where(reports.channel == "fields")
    for subtask in map(str, np.unique(fields.subtask)):
        parts[2] |= _corrected_fields(subtask, fields.where(fields.subtask == subtask), sampling.weights)
    rows: dict[int, Items | Reports] = {tier: items.where(items.tier == tier) for tier in (1, 3)}
    rows[2] = fields
    return {
        (metric, f"tier:{tier}"): mean_of(
            [pair[at] for pair in of_tier.values()],
            Basis.of(rows[tier], f"mean over {len(of_tier)} {'fields' if tier == 2 else 'subtasks'}"),
        )
        for tier, of_tier in parts.items()
        for at, metric in enumerate((CORRECTED, EXACT))
        if of_tier
    }


def _corrected_fields(
    subtask: str, reports: Reports, weights: Floats
) -> dict[str, tuple[Statistic, Statistic]]:
    """Score each field of a report as an item; in an unparsed report all fields are wrong."""
    field = np.array([name.partition(": ")[0] for name in reports.entities])
    names = list(dict.fromkeys(field.tolist()))
    read = reports.parse_status == "ok"
    columns = [np.flatnonzero(field == name) for name in names]
    if not columns:
        return {}
    exact = np.stack(
        [(reports.gold[:, at] == reports.predicted[:, at]).all(axis=1) & read for at in columns], axis=1
    )
    gold = np.stack(
        [np.unique(reports.gold[:, at], axis=0, return_inverse=True)[1].ravel() for at in columns], axis=1
    )
    pairs = _corrected_and_exact(exact, gold, reports.patient, weights, Basis.of(reports))
    return {f"{subtask}:{name}": pair for name, pair in zip(names, pairs, strict=True) if pair}


def _corrected_and_exact(
    exact: Bools, gold: Ints, patient: Ints, weights: Floats, basis: Basis
) -> list[tuple[Statistic, Statistic] | None]:
    """Both statistics of columns of items (item, column); None where all gold answers are equal."""
    units = weights.shape[1]
    number = weights @ np.bincount(patient, minlength=units)
    right = np.zeros((units, exact.shape[1]))
    np.add.at(right, patient, exact)
    shares = ratio(weights @ right, number[:, None])
    chances = [chance_accuracy(column) for column in gold.T]
    return [
        (Statistic((share - chance) / (1 - chance), basis), Statistic(share, basis)) if chance < 1 else None
        for share, chance in zip(shares.T, chances, strict=True)
    ]


def chance_accuracy(gold: Ints) -> float:
    """Expected accuracy of answers sampled from the gold answers."""
    _, counts = np.unique(gold, return_counts=True)
    return float(((counts / len(gold)) ** 2).sum())


def field_scopes(catalogue: Catalogue) -> Scopes:
    """Return the scopes of each subtask of tier 1: itself, its view, its type and its protocol.

    Empty for a protocol whose subtasks share views.
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


def _field_statistics(items: Items, sampling: Resampling) -> _Statistics:
    """Scores of fields as the authors' public program has them: means over items, by scope.

    The exact set counts as right. Hit, precision, recall and F1 are of fields that take several options.
    """
    statistics: _Statistics = {}
    for scope in dict.fromkeys(name for names in sampling.scopes.values() for name in names):
        subtasks = [subtask for subtask, names in sampling.scopes.items() if scope in names]
        rows = items.where(np.isin(items.subtask, subtasks))
        sets = rows.where(rows.answer_type == "multi")
        if len(rows):
            exact = (rows.gold == rows.parsed).astype(float)
            statistics[SET_ACCURACY, scope] = mean_over_items(rows, exact, sampling.weights)
        if len(sets):
            for name, values in zip(OF_SETS, set_scores(sets), strict=True):
                statistics[name, scope] = mean_over_items(sets, values, sampling.weights)
    return statistics


def set_scores(sets: Items) -> tuple[Floats, Floats, Floats, Floats]:
    """Return hit, precision, recall and F1 of each item; a reply that names no option has 0."""
    right, picked, true = (
        np.bitwise_count(masks).astype(np.float64)
        for masks in (sets.gold & sets.parsed, sets.parsed, sets.gold)
    )
    precision = right / np.maximum(picked, 1)
    return (right > 0).astype(np.float64), precision, right / true, 2 * right / (picked + true)


def mean_over_items(rows: Items | Reports, values: Floats, weights: Floats) -> Statistic:
    """The mean of a value of each item."""
    return Statistic(item_mean(values, rows.patient, weights), Basis.of(rows))


def item_mean(values: Floats, patient: Ints, weights: Floats) -> Floats:
    """The mean over items in each resample of patients; NaN where it has none."""
    units = weights.shape[1]
    total = weights @ np.bincount(patient, weights=values, minlength=units)
    return ratio(total, weights @ np.bincount(patient, minlength=units).astype(np.float64))
