"""Values of arms in a file without a name, so that memory does not grow with the number of arms."""

import os
import pickle
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from tempfile import gettempdir, mkstemp
from typing import TypeVar

from cardiolens.errors import RunError

Value = TypeVar("Value")

AT_HAND = 32  # values kept in memory: an arm is compared with several others in turn


class Shelf(Mapping[str, Value]):
    """A mapping whose values are pickled and read by this process alone.

    Its file has no name any more, so that nothing is left of it even where the process is killed.
    """

    def __init__(self) -> None:
        self._file, path = mkstemp(prefix="cardiolens-")
        os.unlink(path)
        weakref.finalize(self, os.close, self._file)
        self._end = 0
        self._places: dict[str, tuple[int, int]] = {}  # start and length
        self._at_hand: OrderedDict[str, Value] = OrderedDict()

    def __setitem__(self, name: str, value: Value) -> None:
        content = memoryview(pickle.dumps(value, pickle.HIGHEST_PROTOCOL))
        self._places[name] = self._end, len(content)
        try:
            while content:
                written = os.pwrite(self._file, content, self._end)
                content, self._end = content[written:], self._end + written
        except OSError as error:
            raise RunError(
                f"{gettempdir()}: what is scored does not fit there ({error.strerror}); free space, or name "
                "another folder in TMPDIR, then run again"
            ) from error
        self._keep(name, value)

    def __getitem__(self, name: str) -> Value:
        if name not in self._at_hand:
            start, length = self._places[name]
            content = bytearray()
            while len(content) < length:
                content += os.pread(self._file, length - len(content), start + len(content))
            self._keep(name, pickle.loads(content))
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
