"""The files and the rank of a LoRA adapter."""

from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.storage.model_files import read_object

_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # legal values of vLLM's max_lora_rank
_CONFIG = "adapter_config.json"


def find_adapter(adapter: str, folder: Path) -> Path:
    """The folder of an adapter, within the model's files or separate; InputError if there is none."""
    for path in (folder / adapter, Path(adapter).expanduser()):
        if (path / _CONFIG).is_file():
            return path.resolve()
    raise InputError(
        f"adapter {adapter!r}: neither a folder of the model's files nor one of its own holds {_CONFIG}; "
        "give the folder of a LoRA adapter"
    )


def room_for(adapter: Path) -> int:
    """The smallest legal max_lora_rank of vLLM that holds the rank of the adapter."""
    rank = read_object(adapter / _CONFIG).get("r")
    fitting = [legal for legal in _RANKS if isinstance(rank, int) and rank <= legal]
    if not fitting:
        raise InputError(
            f"{adapter / _CONFIG}: rank r is {rank!r}; vLLM serves adapters of rank 1 to {_RANKS[-1]}"
        )
    return fitting[0]
