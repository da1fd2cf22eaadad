"""A data set of VLMEvalKit: copy this file and `cardiolens_answers.py` into `vlmeval/dataset/`.

It reads `cardiolens_<name>.tsv` and `images/` from the folder LMUData; the README beside it says how it is
registered.
"""

import json
import os
from typing import Any

import pandas as pd
from vlmeval.dataset.cardiolens_answers import is_correct
from vlmeval.dataset.image_base import ImageBaseDataset
from vlmeval.smp import LMUDataRoot, dump, get_intermediate_file_path, load

PLACE = "<image>"  # stands in the prompt where a frame belongs


class CardioLensQuestions(ImageBaseDataset):
    """Choice questions on cardiac MRI; a reply is right if it names exactly the right options."""

    TYPE = "VQA"

    @classmethod
    def supported_datasets(cls) -> list[str]:
        """Return the names of the tables in LMUData that this class asks."""
        names = os.listdir(LMUDataRoot())
        return sorted(name[:-4] for name in names if name.startswith("cardiolens_") and name.endswith(".tsv"))

    def load_data(self, dataset: str) -> pd.DataFrame:
        """Return the table of a data set, with the paths of its frames made absolute."""
        root = LMUDataRoot()
        table = pd.read_csv(os.path.join(root, f"{dataset}.tsv"), sep="\t", dtype=str, keep_default_na=False)
        table["image_path"] = [
            [os.path.join(root, path) for path in json.loads(paths)] for paths in table["image_path"]
        ]
        return table

    def build_prompt(self, line: Any) -> list[dict[str, str]]:
        """Return the system message, and the frames between the words of the prompt."""
        row = self.data.iloc[line] if isinstance(line, int) else line
        paths = row["image_path"] if isinstance(row["image_path"], list) else [row["image_path"]]
        words = row["prompt"].split(PLACE)
        if len(words) != len(paths) + 1:
            raise ValueError(f"{row['index']}: {len(paths)} frames, but {len(words) - 1} places for them")
        parts = [{"type": "text", "value": f"{row['system']}\n\n{words[0]}"}]
        for path, after in zip(paths, words[1:], strict=True):
            parts += [{"type": "image", "value": path}, {"type": "text", "value": after}]
        return parts

    def evaluate(self, eval_file: str, **judge_kwargs: Any) -> pd.DataFrame:
        """Return the share of right replies, overall and by subtask; no judge is asked."""
        replies = {str(row["index"]): str(row["prediction"]) for _, row in load(eval_file).iterrows()}
        hits: dict[str, list[bool]] = {"Overall": []}
        for _, row in self.data.iterrows():
            told = json.loads(row["scored_by"])
            hit = is_correct(replies.get(str(row["index"]), ""), told)
            hits["Overall"].append(hit)
            hits.setdefault(row["category"], []).append(hit)
        scores = {name: sum(own) / len(own) for name, own in hits.items()}
        table = pd.DataFrame([scores])
        dump(table, get_intermediate_file_path(eval_file, "_acc", "csv"))
        return table
