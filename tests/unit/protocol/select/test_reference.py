"""Every cascade against a second implementation: slow, greedy, written from the text of the protocol.

The reference shares nothing with the product but the catalogue's routes. A volume is a dict, a frame a triple
(view, slice, phase); rules are followed one frame at a time.
"""

import random
from fractions import Fraction
from math import floor

import pytest

from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.route import Route
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.structure import StudyStructure, VolumeStructure

CATALOGUE = load_catalogue("openprotocol-1").subtasks
CLINICAL = SelectorSpec(name="clinical", kind="clinical")
LAX_LGE = ["lge_4ch", "lge_2ch", "lge_3ch"]
CINE = ["cine_sax", "cine_4ch", "cine_3ch", "cine_2ch"]
VIEWS = [*CINE, "lge_sax", *LAX_LGE, "perf_sax", "t2_sax", "t2_4ch"]
POOLED = {"lge_lax": LAX_LGE, "lge": ["lge_sax", *LAX_LGE], "t2": ["t2_sax", "t2_4ch"]}
TEMPORAL = {"C06", "C07", "C08", "C09", "C10", "C11", "C14", "C15", "C17", "C18"}
STAND_INS = {
    "cine_sax": ["cine_4ch", "cine_3ch", "cine_2ch"],
    "cine_4ch": ["cine_3ch", "cine_2ch", "cine_sax"],
    "cine_3ch": ["cine_4ch", "cine_2ch", "cine_sax"],
    "cine_2ch": ["cine_4ch", "cine_3ch", "cine_sax"],
    "lge_sax": ["lge_lax"],
    "lge_lax": ["lge_sax"],
    "t2_sax": ["t2_4ch"],
    "t2_4ch": ["t2_sax"],
}
LAST_RESORT = {
    "cine_sax": ["cine_4ch"],
    "cine_4ch": ["cine_3ch"],
    "cine_3ch": ["cine_4ch"],
    "cine_2ch": ["cine_4ch", "cine_3ch"],
}


def spread(items, m):
    n = len(items)
    if m <= 0:
        return []
    return list(items) if m >= n else [items[floor(Fraction((2 * i + 1) * n, 2 * m))] for i in range(m)]


def outward(items):
    middle, found = len(items) // 2, []
    for distance in range(len(items) + 1):
        for rank in (middle - distance, middle + distance):
            if 0 <= rank < len(items) and items[rank] not in found:
                found.append(items[rank])
    return found


def dealt(n_cards, players):
    hands = {player: 0 for player in players}
    while n_cards > 0:
        for player in players:
            if n_cards > 0:
                hands[player] += 1
                n_cards -= 1
    return hands


def cycle_after_ed(volume):
    return [(volume["ed"] + step) % volume["np"] for step in range(1, volume["np"])]


def mid_basal_apical(volume):
    keys = volume["keys"]
    return [keys[1], keys[0], keys[2]] if len(keys) == 3 else list(keys)


def cine_sax(view, volume, quota):
    if quota <= volume["ns"]:
        return [(view, rank, volume["ed"]) for rank in spread(range(volume["ns"]), quota)]
    chosen = [(view, rank, volume["ed"]) for rank in range(volume["ns"])]
    cycle, keys = cycle_after_ed(volume), volume["keys"]
    room = min(quota - len(chosen), len(keys) * len(cycle))
    for layer, m in dealt(room, mid_basal_apical(volume)).items():
        phases = [volume["es"]] if m == 1 else spread(cycle, m)
        chosen += [(view, layer, phase) for phase in phases]
    others = [rank for rank in range(volume["ns"]) if rank not in keys]
    room = min(quota - len(chosen), len(others) * len(cycle))
    if room:
        return chosen + shifted(view, others, cycle, room, spread(others, room % len(others)))
    return chosen


def shifted(view, layers, cycle, room, with_one_more):
    chosen = []
    for place, layer in enumerate(layers):
        m = room // len(layers) + (1 if layer in with_one_more else 0)
        if m == 0:
            continue
        shift = 0 if m == len(cycle) else (place * len(cycle)) // (len(layers) * m)
        positions = [(at + shift) % len(cycle) for at in spread(range(len(cycle)), m)]
        chosen += [(view, layer, cycle[at]) for at in positions]
    return chosen


def temporal_rule(volume, m):
    known = list(dict.fromkeys([volume["ed"], volume["es"]]))[:m]
    rest = [phase for phase in cycle_after_ed(volume) if phase not in known]
    return known + spread(rest, m - len(known))


def cine_lax(view, volume, quota):
    layers = outward(list(range(volume["ns"])))
    chosen = []
    if quota <= volume["ns"]:
        for layer in layers:  # the central one; the next only once its cycle is used up
            phases = temporal_rule(volume, min(volume["np"], quota - len(chosen)))
            chosen += [(view, layer, phase) for phase in phases]
        return chosen
    chosen = [(view, layer, volume["ed"]) for layer in layers]
    central = temporal_rule(volume, min(quota - len(chosen), volume["np"] - 1) + 1)[1:]
    chosen += [(view, layers[0], phase) for phase in central]
    cycle, others = cycle_after_ed(volume), layers[1:]
    room = min(quota - len(chosen), len(others) * len(cycle))
    return chosen + shifted(view, others, cycle, room, others[: room % len(others)]) if room else chosen


def perfusion(view, volume, quota):
    last = volume["np"] - 1
    t_myo = min(last, volume["t_peak"] + 6)
    if quota <= volume["ns"]:
        return [(view, rank, t_myo) for rank in spread(range(volume["ns"]), quota)]
    chosen = [(view, rank, t_myo) for rank in range(volume["ns"])]
    first = mid_basal_apical(volume)
    players = first + [rank for rank in range(volume["ns"]) if rank not in first]
    in_window = [volume["t_on"] <= t <= min(last, volume["t_peak"] + 12) for t in range(volume["np"])]
    for wanted in (True, False):
        times = [t for t in range(volume["np"]) if t != t_myo and in_window[t] is wanted]
        hands = dealt(min(quota - len(chosen), len(times) * volume["ns"]), players)
        chosen += [(view, rank, t) for rank, m in hands.items() for t in spread(times, m)]
    return chosen


def frames_of(view, volume):
    return [(view, rank, phase) for rank in range(volume["ns"]) for phase in range(volume["np"])]


def lge(study, quota):
    sax = frames_of("lge_sax", study["lge_sax"]) if "lge_sax" in study else []
    decks = [outward(frames_of(view, study[view])) for view in LAX_LGE if view in study]
    lax = []
    while any(decks):
        lax += [deck.pop(0) for deck in decks if deck]
    if quota >= len(sax) + len(lax):
        return sax + lax
    q_lax = min(len(lax), max(quota // 4, 1) if quota >= 4 else 0)
    q_sax = min(len(sax), quota - q_lax)
    return spread(sax, q_sax) + lax[: min(len(lax), quota - q_sax)]


def extracted(name, study, quota):
    if name == "lge":
        return lge(study, quota)
    if name == "lge_lax":
        return lge({view: volume for view, volume in study.items() if view != "lge_sax"}, quota)
    if name == "t2":
        views = [view for view in POOLED["t2"] if view in study]
        quotas = shares(quota, {view: {"t2_sax": 3, "t2_4ch": 1}[view] for view in views}, study)
        return [frame for view in views for frame in spread(frames_of(view, study[view]), quotas[view])]
    rule = {"cine_sax": cine_sax, "perf_sax": perfusion}.get(name, cine_lax)
    if name in ("lge_sax", "t2_sax", "t2_4ch"):
        return spread(frames_of(name, study[name]), quota)
    return rule(name, study[name], quota)


def shares(budget, weights, study):
    """5.3, one frame at a time where the text allows it."""
    names = list(weights)
    given = {name: 1 if place < budget else 0 for place, name in enumerate(names)}
    rest = budget - sum(given.values())
    ideal = {name: Fraction(rest * weights[name], sum(weights.values())) for name in names}
    given = {name: given[name] + floor(ideal[name]) for name in names}
    for name in sorted(names, key=lambda name: floor(ideal[name]) - ideal[name]):
        if sum(given.values()) < budget:
            given[name] += 1
    available = {
        name: sum(study[v]["ns"] * study[v]["np"] for v in POOLED.get(name, [name]) if v in study)
        for name in names
    }
    for name in names:
        while given[name] > available[name]:
            given[name] -= 1
            for other in names:
                if given[other] < available[other]:
                    given[other] += 1
                    break
    return given


def routed_names(subtask, study):
    """Names to show with their weights, and the flags; or why the question is skipped."""

    def there(name):
        return any(view in study for view in POOLED.get(name, [name]))

    route = dict(CATALOGUE[subtask].route)
    present = {name: weight for name, weight in route.items() if there(name)}
    if present:
        return present, (["degraded"] if len(present) < len(route) else [])
    if not any(view.startswith(subtask_prefix(subtask)) for view in study):
        return "sequence_missing"
    for name, weight in route.items():
        for other in STAND_INS.get(name, []):
            allowed = not (subtask in ("C04", "C08") or (subtask == "C18" and other != "cine_4ch"))
            if there(other) and allowed:
                return {other: weight}, ["degraded", f"substituted:{other}"]
    return "view_missing"


def subtask_prefix(subtask):
    letter = subtask.removeprefix("R-")[0]
    return {"C": "cine", "L": "lge", "P": "perf", "T": "t2"}.get(letter, "cine_2ch")


def reference(subtask, study, budget):
    routed = routed_names(subtask, study)
    if isinstance(routed, str):
        return [], [], routed
    weights, flags = routed
    if {"lge_sax", "lge_lax"} <= set(weights):
        weights = {"lge": 1}
    quotas = shares(budget, weights, study)
    chosen = [frame for name in weights for frame in extracted(name, study, quotas[name])]
    shown = [view for name in weights for view in POOLED.get(name, [name])]
    for other in [view for name in weights for view in LAST_RESORT.get(name, [])]:
        if other not in study or other in shown:
            continue
        shown.append(other)
        volume = study[other]
        for layer in outward(list(range(volume["ns"]))):
            phases = spread(range(volume["np"]), min(volume["np"], budget - len(chosen)))
            chosen += [(other, layer, phase) for phase in phases]
    chosen.sort(key=lambda f: (shown.index(f[0]), f[1], (f[2] - study[f[0]]["ed"]) % study[f[0]]["np"]))
    if len(chosen) < budget:
        flags = [*flags, "short"]
    layers = [frame[:2] for frame in chosen]
    if subtask in TEMPORAL and all(layers.count(layer) < 2 for layer in set(layers)):
        flags = [*flags, "no_temporal_evidence"]
    return chosen, flags, None


def any_volume(dice, view):
    static = view.startswith(("lge", "t2"))
    ns, np = dice.randint(1, 16), 1 if static else dice.randint(1, 60)
    ed = 0 if static or view == "perf_sax" else dice.choice([0, dice.randrange(np)])
    es = dice.choice([(ed + round(0.37 * np)) % np, (ed + dice.randrange(1, max(np, 2))) % np])
    keys = sorted(dice.sample(range(ns), min(3, ns))) if dice.random() < 0.5 else spread(range(ns), 3)
    t_on, t_peak = sorted(dice.choices(range(np), k=2))
    return {"ns": ns, "np": np, "ed": ed, "es": es, "keys": keys, "t_on": t_on, "t_peak": t_peak}


def any_study(dice):
    missing = dice.random()
    return {view: any_volume(dice, view) for view in VIEWS if dice.random() > missing}


def as_structure(study):
    sequences = {"perf": "perfusion"}
    volumes = {}
    for view, v in study.items():
        code, _, short = view.partition("_")
        volumes[view] = VolumeStructure(
            view, sequences.get(code, code), short, v["ns"], v["np"], v["ed"], v["es"], tuple(v["keys"]),
            t_on=v["t_on"], t_peak=v["t_peak"],
        )  # fmt: skip
    return StudyStructure("PH-0001", volumes)


def compare(seed, n_pairs):
    dice = random.Random(seed)
    for _ in range(n_pairs):
        study, subtask = any_study(dice), dice.choice(list(CATALOGUE))
        budget = dice.choice([dice.randint(1, 20), dice.randint(1, 450)])
        frames, flags, skipped = reference(subtask, study, budget)
        selection = choose(CLINICAL, None, as_structure(study), Route.of(CATALOGUE[subtask]), budget)
        case = f"{subtask} K={budget} {study}"
        assert selection.skipped == skipped, case
        assert [(f.volume_id, f.slice, f.phase) for f in selection.frames] == frames, case
        assert sorted(selection.flags) == sorted(flags), case
        assert all(f.idx == f.slice * study[f.volume_id]["np"] + f.phase for f in selection.frames), case


@pytest.mark.full
@pytest.mark.parametrize("seed", range(5))
def test_selection_is_the_reference_s(seed):
    compare(seed, 1000)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_selection_is_the_reference_s_at_length(seed):
    compare(seed, 5000)
