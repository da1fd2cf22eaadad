"""Refuses parts of a sweep that do not go together, with a sentence that names both and the remedy."""

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
    for prompt in sweep.prompt:
        _check_steps(sweep, prompt)
    _check_pictures(sweep)
    _check_chosen_frames(sweep)
    for prompt in sweep.prompt:
        if prompt.shots:
            _check_examples(sweep, prompt)
        if prompt.cine == "video":
            _check_videos(sweep, prompt)
        if prompt.samples > 1:
            _check_samples(sweep, prompt)
    _check_token_budgets(sweep)
    _check_captions(sweep)
    _check_primary(sweep)
    _check_decoding(sweep)


def _check_steps(sweep: "SweepSpec", prompt: PromptSpec) -> None:
    """Steps and gold texts are of cases, and steps are about images."""
    hidden = [name for name in sweep.control if name in ("blind", "captions")]
    if prompt.steps != "none" and hidden:
        raise ValueError(
            f"prompt {prompt.name} writes about images first, and control {hidden[0]} shows none; "
            "leave one of them out"
        )
    if prompt.steps != "none" and not sweep.dataset.has_cases:
        raise ValueError(
            f"prompt {prompt.name} has steps {prompt.steps}, which need cases, e.g. of dataset=medthinkvqa; "
            "leave it out"
        )
    if prompt.gold != "none" and not sweep.dataset.has_cases:
        raise ValueError(
            f"prompt {prompt.name} includes gold {prompt.gold}, which only cases have, e.g. those of "
            "dataset=medthinkvqa; leave it out"
        )


def _check_pictures(sweep: "SweepSpec") -> None:
    """Images of a case or of a public set of pictures have no views, and not all have captions."""
    if sweep.dataset.source is None:
        return
    if sweep.dataset.has_pictures and "captions" in sweep.control:
        raise ValueError(
            f"control captions: the pictures of dataset={sweep.dataset.map} have no captions; leave "
            "it out, or take control=[none,blind]"
        )
    for selector in sweep.selector:
        if selector.kind not in CASE_SELECTORS:
            raise ValueError(
                f"selector {selector.name}: images of a case have no views to route and no common size; "
                f"choose of kind {', '.join(CASE_SELECTORS)}, e.g. selector=[uniform]"
            )


def _choosing(sweep: "SweepSpec") -> str | None:
    """Name of the first selector by which a reader chooses its own frames."""
    return next((selector.name for selector in sweep.selector if selector.kind == "self"), None)


def _check_chosen_frames(sweep: "SweepSpec") -> None:
    """A reader that chooses its frames is shown them, and asks for a number of them."""
    choosing = _choosing(sweep)
    if choosing is None:
        return
    if strange := [control for control in sweep.control if control in CHANGED_FRAMES or is_word(control)]:
        raise ValueError(
            f"control {strange[0]} does not show the chosen frames, and with selector {choosing} the "
            f"reader chooses its frames; leave one of them out, or choose of control "
            f"{', '.join(name for name in get_args(Control) if name not in CHANGED_FRAMES)}"
        )
    if counted := [budget for budget in sweep.budget if isinstance(budget, TokenBudget)]:
        raise ValueError(
            f"budget {counted[0]}: with selector {choosing} a reader asks for a number of frames; "
            "give a number, e.g. 16, or leave that selector out"
        )


def _check_examples(sweep: "SweepSpec", prompt: PromptSpec) -> None:
    """Solved examples need solved questions, frames to show beside them, and a prompt of their own."""
    shown = f"prompt {prompt.name} shows {prompt.shots} solved examples"
    if prompt.name == HEADLINE["prompt"]:
        raise ValueError(
            f"{shown}, and headlines are asked with {prompt.name} without any; give the prompt "
            "with examples a name of its own, e.g. prompt=[standard,two_shots]"
        )
    if sweep.dataset.has_cases:
        raise ValueError(
            f"{shown}, and the cases of dataset={sweep.dataset.map} have texts that examples would repeat; "
            "leave one of them out"
        )
    if choosing := _choosing(sweep):
        raise ValueError(
            f"{shown}, and with selector {choosing} the reader chooses its frames, which "
            "examples do not; leave one of them out"
        )


def _check_videos(sweep: "SweepSpec", prompt: PromptSpec) -> None:
    """Videos need cine, its phases in order, a model that takes videos, and a prompt of their own."""
    shown = f"prompt {prompt.name} shows cine as videos"
    if prompt.name == HEADLINE["prompt"]:
        raise ValueError(
            f"{shown}, and headlines are asked with {prompt.name}, which shows frames; give the "
            "prompt with videos a name of its own, e.g. prompt=[standard,video]"
        )
    if sweep.dataset.has_cases or sweep.dataset.has_pictures:
        raise ValueError(
            f"{shown}, and dataset={sweep.dataset.map} has single images and no cine; leave one of them out"
        )
    for selector in sweep.selector:
        if selector.kind == "self":
            raise ValueError(
                f"{shown}, and selector {selector.name} asks for single frames (it has kind self); leave one "
                "of them out"
            )
        if selector.order == "nested":
            raise ValueError(
                f"{shown}, and selector {selector.name} parts the phases of a slice (it has order nested); "
                "leave one of them out"
            )
    for model in sweep.model:
        if not (model.simulated or model.engine == "person" or model.takes_video):
            raise ValueError(f"{shown}, and model {model.name} {model.why_no_video}")


def _check_samples(sweep: "SweepSpec", prompt: PromptSpec) -> None:
    """Several samples need readers that answer one request repeatedly, with other seeds."""
    wanted = f"prompt {prompt.name} asks for {prompt.samples} samples"
    if choosing := _choosing(sweep):
        raise ValueError(
            f"{wanted}, and with selector {choosing} each would choose other frames; leave one of them out"
        )
    for model in sweep.model:
        if model.engine == "person":
            raise ValueError(
                f"{wanted}, and {model.name} is a person, who read each question once; leave one of them out"
            )
        if model.http is not None and not model.http.sends_sampling:
            raise ValueError(
                f"{wanted}, with a temperature and a seed for each, and model {model.name} has "
                "http.sends_sampling: false; set it true if the server takes them, or leave one of them "
                "out"
            )


def _check_token_budgets(sweep: "SweepSpec") -> None:
    """A budget of visual tokens needs models whose visual tokens are known."""
    uncounted = [model for model in sweep.model if not model.counts_tokens]
    counted = [budget for budget in sweep.budget if isinstance(budget, TokenBudget)]
    if uncounted and counted:
        kinds = {"vllm": "has no processor", "http": "declares no image_tokens", "person": "is a person"}
        why = kinds.get(uncounted[0].engine, "is a simulated reader")
        raise ValueError(
            f"budget {counted[0]} needs a model whose visual tokens are known, and {uncounted[0].name} "
            f"{why}; give a number of frames, or leave that model out"
        )


def _check_captions(sweep: "SweepSpec") -> None:
    """The control that shows captions alone needs captions."""
    if "captions" in sweep.control and sweep.caption == "none":
        raise ValueError("control captions shows captions alone, and caption is none; give view or full")


def _check_primary(sweep: "SweepSpec") -> None:
    """What is declared before a run must be in the run."""
    names = [model.name for model in sweep.model]
    for name in sweep.compared:
        if name not in names:
            raise ValueError(f"primary names {name!r}, which is none of the models {', '.join(names)}")
    levels = {name: {entry.name for entry in getattr(sweep, name)} for name in ("prompt", "selector")}
    levels |= {name: set(map(str, getattr(sweep, name))) for name in ("budget", "control", "wording")}
    if isinstance(sweep.primary, PrimaryQuestionSpec):
        _check_question(sweep, sweep.primary, levels[sweep.primary.factor])
        return
    for factor, value in HEADLINE.items() if sweep.primary else ():
        if value not in levels[factor]:
            raise ValueError(
                f"primary compares headlines, which are asked with {factor} {value}, and {factor} is "
                f"{', '.join(sorted(levels[factor]))}; add {value}"
            )


def _check_question(sweep: "SweepSpec", primary: PrimaryQuestionSpec, levels: set[str]) -> None:
    """A declared question needs models to ask, and both of the levels that it compares."""
    if not sweep.compared:
        raise ValueError("primary asks a question over all models, and every model is a simulated reader")
    number = sum(level.isdecimal() for level in levels)
    if primary.factor == "budget" and number < 2:
        raise ValueError(f"primary compares budgets, and budget is {', '.join(levels)}; give two numbers")
    needed = {primary.level, REFERENCES[primary.factor]} if primary.factor != "budget" else set()
    lacking = sorted(str(level) for level in needed - levels)
    if lacking:
        raise ValueError(
            f"primary compares {primary.words}, and {primary.factor} is {', '.join(sorted(levels))}; "
            f"add {lacking[0]}"
        )


def _check_decoding(sweep: "SweepSpec") -> None:
    """Letters by structured decoding need servers that have it."""
    free = [model.name for model in sweep.model if model.http and model.http.dialect != "vllm"]
    if free and sweep.answer_format == "choice":
        raise ValueError(
            f"answer_format choice needs structured decoding, which {free[0]} is not known to have; "
            "use letters or json, or declare http.dialect: vllm if vLLM serves it"
        )
