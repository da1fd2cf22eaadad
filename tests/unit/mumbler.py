"""A reader whose replies are partly prose, and that gives its letters when it is asked back."""

from pathlib import Path
from typing import Any

from small_cohort import reader, sweep_spec

from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.ask import Ask, Engine, Pictures, Reply
from cardiolens.protocol.dialogue.asking_back import NONE

PROSE = "It might be that, but the images show much else besides."


class Mumbler(Engine):
    """Reader that says its first option: at once, or in prose and only when it is asked back.

    `prose` of sixteen first replies are prose; asked back, it says N to `silent` of sixteen. If
    `constrained`, its second replies are letters alone.
    """

    def __init__(self, prose: int = 8, silent: int = 0, constrained: bool = True) -> None:
        self.asked: list[Ask] = []
        self._prose, self._silent, self._constrained = prose, silent, constrained

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.asked.append(ask)
        for key in ask.frame_keys:
            pictures(key)
        draw = int(ask.request_key[0], 16)
        letter = sorted(ask.option_keys)[0] if ask.option_keys else ""
        if is_second(ask):
            assert PROSE in ask.text
            assert NONE in ask.constraint.legal
            text = NONE if draw < self._silent else letter
            text = text if self._constrained else f"My final answer is {text}."
        else:
            text = PROSE if ask.option_keys and draw < self._prose else f"ANSWER: {letter}"
        sure = {letter: -0.1} if is_second(ask) else {}
        return Reply(text, finish_reason="stop", prompt_tokens=10, output_tokens=1, option_logprobs=sure)

    @property
    def second(self) -> list[Ask]:
        """The second turns that it was asked."""
        return [ask for ask in self.asked if is_second(ask)]


def is_second(ask: Ask) -> bool:
    """Whether a request asks back."""
    return "You replied:" in ask.text


def asking_spec(root: Path, asks_back: bool = True, **changes: Any) -> SweepSpec:
    """A sweep of one reader on a small cohort that asks back, or does not."""
    prompt = {"name": "standard", "style": "standard", "max_tokens": 64, "asks_back": asks_back}
    return sweep_spec(root, reader("uniform"), **{"prompt": [prompt]} | changes)
