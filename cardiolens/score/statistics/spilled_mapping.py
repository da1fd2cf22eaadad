"""A mapping with its values in an unlinked file, so that memory does not grow with the number of arms."""

import pickle
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import TypeVar

from cardiolens.storage.spool import Place, UnlinkedFile

Value = TypeVar("Value")

AT_HAND = 32  # values cached in memory: an arm is compared with several others in turn


class SpilledMapping(Mapping[str, Value]):
    """A mapping of pickled values. Only the process that made it writes; pickled copies only read."""

    def __init__(self) -> None:
        self._file = UnlinkedFile()
        self._places: dict[str, Place] = {}
        self._at_hand: OrderedDict[str, Value] = OrderedDict()

    def __getstate__(self) -> tuple[UnlinkedFile, dict[str, Place]]:
        return self._file, self._places

    def __setstate__(self, state: tuple[UnlinkedFile, dict[str, Place]]) -> None:
        self._file, self._places = state
        self._at_hand = OrderedDict()

    def __setitem__(self, name: str, value: Value) -> None:
        self._places[name] = self._file.append(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        self._keep(name, value)

    def __getitem__(self, name: str) -> Value:
        if name not in self._at_hand:
            self._keep(name, pickle.loads(self._file.read(self._places[name])))
        self._at_hand.move_to_end(name)
        return self._at_hand[name]

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _keep(self, name: str, value: Value) -> None:
        self._at_hand[name] = value
        if len(self._at_hand) > AT_HAND:
            self._at_hand.popitem(last=False)
