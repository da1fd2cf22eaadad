"""The files and the rank of a LoRA adapter."""

from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.storage.model_files import read_object

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # legal values of vLLM's max_lora_rank
_CONFIG = "adapter_config.json"


def find_adapter(adapter: str, folder: Path) -> Path:
    """Find the folder of an adapter, inside the model's folder or separate; InputError if neither exists."""
    for path in (folder / adapter, Path(adapter).expanduser()):
        if (path / _CONFIG).is_file():
            return path.resolve()
    raise InputError(
        f"adapter {adapter!r}: no folder of this name, in the model's folder or elsewhere, holds {_CONFIG}; "
        "give the folder of a LoRA adapter"
    )


def room_for(adapter: Path) -> int:
    """Return vLLM's smallest legal max_lora_rank that is at least the adapter's rank; else InputError."""
    rank = read_object(adapter / _CONFIG).get("r")
    fitting = [legal for legal in _RANKS if isinstance(rank, int) and rank <= legal]
    if not fitting:
        raise InputError(
            f"{adapter / _CONFIG}: rank r is {rank!r}; vLLM serves adapters of rank 1 to {_RANKS[-1]}"
        )
    return fitting[0]
