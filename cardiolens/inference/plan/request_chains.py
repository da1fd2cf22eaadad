"""Requests that are chains: steps before an answer, samples of one question, frames that a reader chooses."""

from collections.abc import Callable, Sequence

from cardiolens.base.digest import digest_of
from cardiolens.config.arms import Arm
from cardiolens.inference.plan.keys import request_key
from cardiolens.inference.plan.planned_study import FrameBlock, PlannedStudy
from cardiolens.protocol.dialogue.chain import Chain, Samples, Stage, Steps
from cardiolens.protocol.dialogue.frame_requests import Choice, Offer
from cardiolens.protocol.prompts.frame_request_prompt import Asking, offered
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.legal import FREE


def offer_among(study: PlannedStudy, frames: tuple[Frame, ...], caption: CaptionLevel) -> Offer:
    """Return the offer of frames among which a reader may choose."""
    if frames not in study.offers:
        offer = offered(frames, study.structure, caption)
        pictures = [study.pictures[frame.volume_id, frame.idx][0] for frame in frames]
        study.offers[frames] = Offer(digest_of([list(map(list, offer)), pictures]), offer)
    return study.offers[frames]


def choice_of(arm: Arm, words: Asking, offer: Offer, max_tokens: int, stage_key: str) -> Choice:
    """Build the chain of a reader that chooses its frames."""
    return Choice(
        offer=offer,
        budget=frame_budget(arm),
        rounds=arm.selector.rounds,
        first=words.first,
        further=words.further,
        answer_one=words.answer_one,
        answer_many=words.answer_many,
        ask_max_tokens=tokens_to_ask(frame_budget(arm)),
        max_tokens=max_tokens,
        bound=arm.model.http is None or arm.model.http.dialect == "vllm",
        stage_key=stage_key,
    )


def stages_before(
    block: FrameBlock, endings: Sequence[str], max_tokens: int, decoding: tuple[str, ...]
) -> tuple[Stage, ...]:
    """Build the stages before the answer: free text after the same images."""
    return tuple(
        Stage(
            f"{block.text}{ending}",
            max_tokens,
            request_key(block.state, ending, FREE.text, str(max_tokens), *decoding),
        )
        for ending in endings
    )


def samples_of(prompt: str, max_tokens: int, key: Callable[..., str], arm: Arm) -> tuple[Stage, ...]:
    """Build the samples of one question; keys do not depend on their number, so more samples reuse fewer."""
    temperature, first = arm.prompt.temperature, arm.model.sampling.seed or 0
    assert temperature, "checked when the configuration was read"
    return tuple(
        Stage(prompt, max_tokens, key("sample", str(temperature), str(seed)), seed, temperature)
        for seed in range(first, first + arm.prompt.samples)
    )


def declared_by(chain: Chain | None) -> tuple[str, ...]:
    """Return the parts of a chain that also decide its last reply, for the request key."""
    if chain is None:
        return ()
    if isinstance(chain, Steps | Samples):
        return tuple(stage.key for stage in chain.stages)
    prompts = chain.first, chain.further, chain.answer_one, chain.answer_many
    return chain.stage_key, *prompts, *map(str, (chain.budget, chain.rounds, chain.bound))


def frame_budget(arm: Arm) -> int:
    """Return the frame budget of an arm whose reader chooses its frames."""
    assert isinstance(arm.budget, int), "a token budget is refused for a reader that chooses its frames"
    return arm.budget


def largest_frames(study: PlannedStudy, offer: Sequence[Frame], budget: int) -> tuple[Frame, ...]:
    """Return the `budget` frames of an offer that have the most pixels as rendered."""

    def pixels(frame: Frame) -> int:
        height, width = study.pictures[frame.volume_id, frame.idx][1]
        return height * width

    return tuple(sorted(offer, key=pixels, reverse=True)[:budget])


def tokens_to_ask(budget: int) -> int:
    """Return the token limit of a reply that names frames, each of about 16 tokens."""
    return 64 + 24 * budget
