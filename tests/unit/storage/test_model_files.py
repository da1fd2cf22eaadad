"""The tokens that a model's config.json allows, with its scaling of positions."""

import json
from pathlib import Path
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.storage.model_files import check_length


@pytest.mark.parametrize(
    ("config", "most"),
    [
        ({"max_position_embeddings": 4096}, 4096),
        ({"text_config": {"max_position_embeddings": 4096}}, 4096),
        ({"max_position_embeddings": 4096, "rope_scaling": {"type": "linear", "factor": 2.0}}, 8192),
        (
            {"max_position_embeddings": 4096, "rope_parameters": {"full": {"type": "linear", "factor": 2}}},
            8192,
        ),
    ],
)
def test_a_length_within_the_models_positions_is_taken(
    config: dict[str, Any], most: int, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    check_length(tmp_path, most)
    with pytest.raises(InputError, match=rf"max_model_len: {most + 1:,} is more than the {most:,} tokens"):
        check_length(tmp_path, most + 1)


def test_a_config_without_positions_is_left_to_the_engine(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    check_length(tmp_path, 10**6)
