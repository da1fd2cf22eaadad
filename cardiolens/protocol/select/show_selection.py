"""Selections of one study, shown as records or pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.config.selector import SelectorSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.select.choose import choose
from cardiolens.protocol.select.feature_source import check_encoders, sights_of
from cardiolens.protocol.select.feature_store import Features
from cardiolens.protocol.select.route import Route
from cardiolens.protocol.select.selection import Selection, record
from cardiolens.protocol.select.selection_picture import Panel, picture
from cardiolens.protocol.select.study_folder import LookedAt, declared_structure, look_at
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.study.anatomy import anatomy_of
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_study
from cardiolens.study.structure import StudyStructure


@dataclass(frozen=True, slots=True)
class ShownSelection:
    """One selection with its subtask, selector and budget."""

    study_id: str
    subtask: str
    selector: SelectorSpec
    seed: int | None
    budget: int
    selection: Selection

    @property
    def title(self) -> str:
        seed = "" if self.seed is None else f"@{self.seed}"
        return f"{self.selector.name}{seed}, {self.budget}"

    def record(self) -> dict[str, object]:
        """The `selection-1` record."""
        return record(
            self.selection,
            study_id=self.study_id,
            subtask=self.subtask,
            selector=self.selector.name,
            budget=self.budget,
            seed=self.seed,
        )


def find_study(name: str, spec: SweepSpec) -> Study:
    """Read a study by its folder path, or by folder name in the dataset's `studies`."""
    folders = [Path(name), spec.dataset.studies / name]
    for folder in folders:
        if name and (folder / MANIFEST_NAME).is_file():
            return read_study(folder, spec.dataset.roots, anatomy_of(spec.dataset.protocol))
    places = " nor in ".join(str(folder) for folder in folders)
    raise InputError(f"study {name!r}: no {MANIFEST_NAME} in {places}; give the path of a study folder")


def records(study: Study, spec: SweepSpec) -> Iterator[dict[str, object]]:
    """Return one record per subtask, selector and budget; read pixels only if a selector needs them."""
    windows = study.anatomy.windows(spec.dataset.display)
    if sights_of(spec):
        study_view = look_at(study, windows)
        return (panel.record() for panel in _shown(study_view.structure, spec, _features(study_view, spec)))
    structure = declared_structure(study, windows)
    return (panel.record() for panel in _shown(structure, spec, {}))


def draw(study: Study, spec: SweepSpec, folder: Path) -> list[Path]:
    """Write one picture per subtask, `<study>-<subtask>.png`."""
    study_view = look_at(study, study.anatomy.windows(spec.dataset.display))
    panels: dict[str, list[Panel]] = {}
    for panel in _shown(study_view.structure, spec, _features(study_view, spec)):
        panels.setdefault(panel.subtask, []).append(Panel(panel.title, panel.selection))
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{study.study_id}-{subtask}.png" for subtask in panels]
    for path, panel_group in zip(paths, panels.values(), strict=True):
        picture(study_view.structure, panel_group, study_view.pixels).save(path, optimize=True)
    return paths


def _features(study_view: LookedAt, spec: SweepSpec) -> Features:
    check_encoders(spec)
    return {sight.encoder: study_view.features(sight) for sight in sights_of(spec)}


def _shown(structure: StudyStructure, spec: SweepSpec, features: Features) -> Iterator[ShownSelection]:
    catalogue = load_catalogue(spec.dataset.protocol)
    subtasks: Sequence[str] = spec.subtask or tuple(catalogue.subtasks)
    seeded = [(selector, seed) for selector in spec.selector for seed in selector.seeds or (None,)]
    for subtask, (selector, seed), budget in product(subtasks, seeded, spec.budget):
        if not isinstance(budget, int):
            raise InputError(f"budget {budget}: tokens depend on a model; give a number of frames here")
        selection = choose(
            selector,
            seed,
            structure,
            Route.of(catalogue[subtask]),
            budget,
            features=features.get(selector.encoder),
            question=catalogue[subtask].question,
        )
        yield ShownSelection(structure.study_id, subtask, selector, seed, budget, selection)
