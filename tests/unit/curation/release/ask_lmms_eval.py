"""Run lmms-eval on a task folder with given replies: `python ask_lmms_eval.py FOLDER REPLIES SIMPLE TASK...`.

Prints JSON: by task, its accuracy, and of each question whether its reply was right and what was asked. It is
a process of its own: lmms-eval changes the process that it runs in.
"""

import json
import sys
from pathlib import Path
from typing import Any

from lmms_eval.api.model import lmms
from lmms_eval.evaluator import simple_evaluate
from lmms_eval.tasks import TaskManager


class Replies(lmms):
    """A model that gives a reply by the question's id, after checks of what it is shown."""

    def __init__(self, replies: dict[str, str], *, simple: bool) -> None:
        super().__init__()
        self.is_simple = simple
        self.replies, self.asked = replies, {}

    def generate_until(self, requests: list[Any]) -> list[str]:
        given = []
        for request in requests:
            if self.is_simple:
                text, _, visuals, number, task, split = request.args
                doc = self.task_dict[task][split][number]
                self.asked[doc["qa_id"]] = {"text": text, "images": len(visuals(doc))}
            else:
                _, messages, _, number, task, split = request.args
                doc = self.task_dict[task][split][number]
                system, user = messages(doc)
                words = [part["text"] for part in [*system["content"], *user["content"]] if "text" in part]
                n_images = sum(part["type"] == "image" for part in user["content"])
                self.asked[doc["qa_id"]] = {"text": "|".join(words), "images": n_images}
            given.append(self.replies[doc["qa_id"]])
        return given

    def loglikelihood(self, requests: list[Any]) -> list[Any]:
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> list[str]:
        raise NotImplementedError


def main(folder: str, replies: str, simple: str, *tasks: str) -> None:
    model = Replies(json.loads(Path(replies).read_text()), simple=simple == "simple")
    manager = TaskManager(include_path=folder, include_defaults=False)
    told = simple_evaluate(model=model, tasks=list(tasks), task_manager=manager, bootstrap_iters=0)
    print(
        json.dumps(
            {
                task: {
                    "accuracy": told["results"][task]["accuracy,none"],
                    "right": {sample["doc"]["qa_id"]: sample["accuracy"] for sample in told["samples"][task]},
                    "asked": model.asked,
                }
                for task in tasks
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
