"""A LoRA adapter that a model is served with: its files and its rank."""

import json
from pathlib import Path

from cardiolens.errors import InputError

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM makes room for
_CONFIG = "adapter_config.json"


def find_adapter(adapter: str, folder: Path) -> Path:
    """The adapter's folder: within the model's files, or one of its own."""
    for path in (folder / adapter, Path(adapter).expanduser()):
        if (path / _CONFIG).is_file():
            return path.resolve()
    raise InputError(
        f"adapter {adapter!r}: neither a folder of the model's files nor one of its own holds {_CONFIG}; "
        "give the folder of a LoRA adapter"
    )


def room_for(adapter: Path) -> int:
    """The least rank for which vLLM can make room that holds the adapter's."""
    rank = json.loads((adapter / _CONFIG).read_text()).get("r")
    fitting = [legal for legal in _RANKS if isinstance(rank, int) and rank <= legal]
    if not fitting:
        raise InputError(
            f"{adapter / _CONFIG}: rank r is {rank!r}; vLLM serves adapters of rank 1 to {_RANKS[-1]}"
        )
    return fitting[0]
