"""Refuses parts of a sweep that do not go together, with a sentence that names both and the remedy."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from cardiolens.base.entry_points import is_word
from cardiolens.config.sweep_factors import (
    CHANGED_FRAMES,
    HEADLINE,
    REFERENCES,
    Control,
    PrimaryQuestionSpec,
    PromptSpec,
    TokenBudget,
)

if TYPE_CHECKING:
    from cardiolens.config.sweep import SweepSpec

CASE_SELECTORS = ("uniform", "random", "all")  # kinds that need neither views nor pixels


def check_combinations(sweep: "SweepSpec") -> None:
    """ValueError names the first two parts of a sweep that do not go together, and what to do."""
    for problem in _problems(sweep):
        raise ValueError(problem)


def _problems(sweep: "SweepSpec") -> Iterator[str]:
    choosing = next((selector.name for selector in sweep.selector if selector.kind == "self"), None)
    for prompt in sweep.prompt:
        yield from _of_cases(sweep, prompt)
    yield from _of_pictures(sweep)
    if choosing is not None:
        yield from _of_chosen_frames(sweep, choosing)
    for prompt in sweep.prompt:
        if prompt.name == HEADLINE["prompt"] and (prompt.shots or prompt.cine == "video"):
            what = f"{prompt.shots} solved examples" if prompt.shots else "cine as videos"
            yield (
                f"prompt {prompt.name} shows {what}, and headlines are asked with {prompt.name} alone; "
                "give the prompt a name of its own, e.g. prompt=[standard,two_shots]"
            )
        if prompt.shots:
            yield from _of_examples(sweep, prompt, choosing)
        if prompt.cine == "video":
            yield from _of_videos(sweep, prompt)
        if prompt.samples > 1:
            yield from _of_samples(sweep, prompt, choosing)
    uncounted = [model for model in sweep.model if not model.counts_tokens]
    counted = [budget for budget in sweep.budget if isinstance(budget, TokenBudget)]
    if uncounted and counted:
        kinds = {"vllm": "has no processor", "http": "declares no image_tokens", "person": "is a person"}
        yield (
            f"budget {counted[0]} needs a model whose visual tokens are known, and {uncounted[0].name} "
            f"{kinds.get(uncounted[0].engine, 'is a simulated reader')}; give a number of frames, or leave "
            "that model out"
        )
    if "captions" in sweep.control and sweep.caption == "none":
        yield "control captions shows captions alone, and caption is none; give view or full"
    yield from _of_primary(sweep)
    free = [model.name for model in sweep.model if model.http and model.http.dialect != "vllm"]
    if free and sweep.answer_format == "choice":
        yield (
            f"answer_format choice needs structured decoding, which {free[0]} is not known to have; "
            "use letters or json, or declare http.dialect: vllm if vLLM serves it"
        )


def _of_cases(sweep: "SweepSpec", prompt: PromptSpec) -> Iterator[str]:
    """Steps and gold texts are of cases, and steps are about images."""
    hidden = [name for name in sweep.control if name in ("blind", "captions")]
    if prompt.chained and hidden:
        yield (
            f"prompt {prompt.name} writes about images first, and control {hidden[0]} shows none; "
            "leave one of them out"
        )
    if prompt.steps != "none" and not sweep.dataset.has_cases:
        yield (
            f"prompt {prompt.name} has steps {prompt.steps}, which need cases, e.g. those of "
            "dataset=medthinkvqa; leave it out"
        )


def _of_pictures(sweep: "SweepSpec") -> Iterator[str]:
    """Images of a case or of a public set of pictures have no views, and not all have captions."""
    if sweep.dataset.source is None:
        return
    if sweep.dataset.has_pictures and "captions" in sweep.control:
        yield (
            f"control captions: the pictures of dataset={sweep.dataset.map} have no captions; leave "
            "it out, or take control=[none,blind]"
        )
    for selector in sweep.selector:
        if selector.kind not in CASE_SELECTORS:
            yield (
                f"selector {selector.name}: images of a case have no views to route and no common size; "
                f"choose of kind {', '.join(CASE_SELECTORS)}, e.g. selector=[uniform]"
            )


def _of_chosen_frames(sweep: "SweepSpec", choosing: str) -> Iterator[str]:
    """A reader that chooses its frames is shown them, and asks for a number of them."""
    if strange := [control for control in sweep.control if control in CHANGED_FRAMES or is_word(control)]:
        legal = ", ".join(name for name in get_args(Control) if name not in CHANGED_FRAMES)
        yield (
            f"control {strange[0]} does not show the chosen frames, and with selector {choosing} the "
            f"reader chooses its frames; leave one of them out, or choose of control {legal}"
        )
    if counted := [budget for budget in sweep.budget if isinstance(budget, TokenBudget)]:
        yield (
            f"budget {counted[0]}: with selector {choosing} a reader asks for a number of frames; "
            "give a number, e.g. 16, or leave that selector out"
        )


def _of_examples(sweep: "SweepSpec", prompt: PromptSpec, choosing: str | None) -> Iterator[str]:
    """Solved examples need solved questions, and frames to show beside them."""
    shown = f"prompt {prompt.name} shows {prompt.shots} solved examples"
    if sweep.dataset.has_cases:
        yield (
            f"{shown}, and the cases of dataset={sweep.dataset.map} have texts that examples would repeat; "
            "leave one of them out"
        )
    if choosing:
        yield (
            f"{shown}, and with selector {choosing} the reader chooses its frames, which "
            "examples do not; leave one of them out"
        )


def _of_videos(sweep: "SweepSpec", prompt: PromptSpec) -> Iterator[str]:
    """Videos need cine, its phases in order, and a model that takes videos."""
    shown = f"prompt {prompt.name} shows cine as videos"
    if sweep.dataset.source is not None:
        yield (
            f"{shown}, and dataset={sweep.dataset.map} has single images and no cine; leave one of them out"
        )
    for selector in sweep.selector:
        if selector.kind == "self":
            yield (
                f"{shown}, and selector {selector.name} asks for single frames (it has kind self); leave one "
                "of them out"
            )
        if selector.order == "nested":
            yield (
                f"{shown}, and selector {selector.name} parts the phases of a slice (it has order nested); "
                "leave one of them out"
            )
    for model in sweep.model:
        if why := model.why_no_video:
            yield f"{shown}, and model {model.name} {why}"


def _of_samples(sweep: "SweepSpec", prompt: PromptSpec, choosing: str | None) -> Iterator[str]:
    """Several samples need readers that answer one request repeatedly, with other seeds."""
    asks = f"prompt {prompt.name} asks for {prompt.samples} samples"
    if choosing:
        yield f"{asks}, and with selector {choosing} each would choose other frames; leave one of them out"
    for model in sweep.model:
        if model.engine == "person":
            yield (
                f"{asks}, and {model.name} is a person, who read each question once; leave one of them out"
            )
        if model.http is not None and not model.http.sends_sampling:
            yield (
                f"{asks}, with a temperature and a seed for each, and model {model.name} has "
                "http.dialect: reasoning; set openai if the server takes them, or leave one of them out"
            )


def _of_primary(sweep: "SweepSpec") -> Iterator[str]:
    """What is declared before a run must be in the run."""
    names = [model.name for model in sweep.model]
    for name in sweep.compared:
        if name not in names:
            yield f"primary names {name!r}, which is none of the models {', '.join(names)}"
    levels = {name: {entry.name for entry in getattr(sweep, name)} for name in ("prompt", "selector")}
    levels |= {name: set(map(str, getattr(sweep, name))) for name in ("budget", "control", "wording")}
    if isinstance(sweep.primary, PrimaryQuestionSpec):
        yield from _of_question(sweep, sweep.primary, levels[sweep.primary.factor])
        return
    for factor, value in HEADLINE.items() if sweep.primary else ():
        if value not in levels[factor]:
            yield (
                f"primary compares headlines, which are asked with {factor} {value}, and {factor} is "
                f"{', '.join(sorted(levels[factor]))}; add {value}"
            )


def _of_question(sweep: "SweepSpec", primary: PrimaryQuestionSpec, levels: set[str]) -> Iterator[str]:
    """A declared question needs models to ask, and both of the levels that it compares."""
    if not sweep.compared:
        yield "primary asks a question over all models, and every model is a simulated reader"
    if primary.factor == "budget":
        if sum(level.isdecimal() for level in levels) < 2:
            yield f"primary compares budgets, and budget is {', '.join(levels)}; give two numbers"
        return
    for lacking in sorted({str(primary.level), REFERENCES[primary.factor]} - levels):
        yield (
            f"primary compares {primary.words}, and {primary.factor} is {', '.join(sorted(levels))}; "
            f"add {lacking}"
        )
