"""How often intervals of components of variance hold the deviation of the effects that were drawn.

    python -m bench.components --runs 40

Simulates exact answers on the logit scale: 40 patients, 8 subtasks, 4 models, 3 selections, 3 budgets and 2
prompts, with crossed effects of known size. The truth of a run is the root mean square of the effects drawn.
"""

import argparse
import time
from itertools import product

import numpy as np

from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.variance_components import components

SIZES = {"model": 4, "protocol": 3, "budget": 3, "prompt": 2}
DEVIATIONS = {"patient": 0.7, "subtask": 0.5, "item": 0.6, "model": 0.6, "protocol": 0.3, "budget": 0.2}
DEVIATIONS |= {"prompt": 0.4}
PATIENTS, SUBTASKS = 40, 8


def answers(seed: int) -> tuple[Items, list[ArmFactors], dict[str, float]]:
    """The answers of one run, its arms, and the deviations of the effects that were drawn."""
    dice = np.random.default_rng(seed)
    numbers = SIZES | {"patient": PATIENTS, "subtask": SUBTASKS, "item": PATIENTS * SUBTASKS}
    effects = {name: dice.normal(0, DEVIATIONS[name], number) for name, number in numbers.items()}
    levels = list(product(*(range(number) for number in SIZES.values())))
    arms = [
        ArmFactors(
            f"{at:03d}", f"m{model}", f"s{selector}", str(8 * (1 + budget)), ("standard", "other")[prompt]
        )
        for at, (model, selector, budget, prompt) in enumerate(levels)
    ]
    cells = np.array(list(product(range(len(levels)), range(SUBTASKS), range(PATIENTS))))
    arm, subtask, patient = cells.T
    item = patient * SUBTASKS + subtask
    latent = effects["patient"][patient] + effects["subtask"][subtask] + effects["item"][item]
    for name, level in zip(SIZES, np.array(levels)[arm].T, strict=True):
        latent = latent + effects[name][level]
    right = dice.random(len(cells)) < 1 / (1 + np.exp(-latent))
    ones = np.ones(len(cells), np.int64)
    items = Items(
        arm=np.array([one.arm_id for one in arms])[arm],
        subtask=np.char.add("S", subtask.astype(str)),
        sequence=np.full(len(cells), "cine"),
        answer_type=np.full(len(cells), "single"),
        parse_status=np.full(len(cells), "ok"),
        question=item,
        request=np.arange(len(cells)),
        patient=patient,
        hospital=-ones,
        tier=ones,
        options=2 * ones,
        gold=ones,
        parsed=np.where(right, 1, 2),
        judged=np.ones(len(cells), bool),
    )
    truth = {name: float(np.sqrt(np.mean(drawn**2))) for name, drawn in effects.items()}
    return items, arms, truth


def main() -> None:
    """Print the mean ratio of estimate to truth, and how often the interval holds the truth."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=40)
    given = arguments.parse_args()
    start = time.perf_counter()
    ratios: dict[str, list[float]] = {}
    held: dict[str, list[bool]] = {}
    for seed in range(given.runs):
        items, arms, truth = answers(seed)
        for row in components({arm.arm_id: items.where(items.arm == arm.arm_id) for arm in arms}, arms, seed):
            name = str(row["component"])
            if name in truth:
                value, low, high = (float(str(row[end])) for end in ("value", "low", "high"))
                ratios.setdefault(name, []).append(value / truth[name])
                held.setdefault(name, []).append(low <= truth[name] <= high)
    for name, found in ratios.items():
        share = 100 * np.mean(held[name])
        print(f"{name:10s} estimate / truth {np.mean(found):.2f}, interval holds it {share:.0f} %")
    print(f"{given.runs} runs of {len(items)} answers, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
