"""Folders of protocols, and the anatomy of each: what its studies hold, and how that is shown.

The anatomy is the file `anatomy.yaml` of a folder. A folder without one asks about the heart, with the
anatomy of `openprotocol-1`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.paths import PACKAGE
from cardiolens.base.untrusted.bounded_files import read_yaml as read_bounded_yaml
from cardiolens.config.base import Spec, validated
from cardiolens.config.dataset import JOIN, WindowPct, Windows

DATA = PACKAGE / "protocol" / "tasks" / "data"
HEAD = "protocol.yaml"
MOST_BYTES = 16 << 20  # of a data file


def shipped() -> list[str]:
    """Return the names of the protocols that come with CardioLens, sorted."""
    return sorted(path.name for path in DATA.iterdir() if path.is_dir())


def protocol_folder(protocol: str) -> Path:
    """Return the folder of a shipped protocol, or the user's own folder; InputError if it is neither."""
    if protocol in shipped():
        return DATA / protocol
    if Path(protocol).is_dir():
        return Path(protocol)
    raise InputError(
        f"protocol {protocol!r} is neither shipped nor a folder; choose {' or '.join(shipped())}, or give a "
        "folder with a protocol.yaml"
    )


def protocols_of(protocol: str) -> tuple[str, ...]:
    """Return the protocols that are asked together, as in `openprotocol-1+authors-1`; else the one given."""
    if JOIN not in protocol or Path(protocol).is_dir():
        return (protocol,)
    names = tuple(protocol.split(JOIN))
    if len(set(names)) < len(names):
        raise InputError(f"protocol {protocol!r} names one protocol twice; name each once")
    return names


def lineage(protocol: str) -> tuple[Path, ...]:
    """Return the folder of a protocol and those that it inherits from; of joined ones, one after another."""
    return tuple(dict.fromkeys(folder for name in protocols_of(protocol) for folder in _lineage(name)))


def _lineage(protocol: str) -> Iterator[Path]:
    folder = protocol_folder(protocol)
    yield folder
    parent = read_yaml(folder / HEAD).get("inherits") if (folder / HEAD).exists() else None
    if parent is None:
        return
    if parent not in shipped() or DATA / str(parent) == folder:
        raise InputError(
            f"{folder / HEAD}: inherits {parent!r}; expected another protocol of {', '.join(shipped())}"
        )
    yield from _lineage(parent)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read the mapping in a data file; InputError names the file and the mistake."""
    try:
        tree = read_bounded_yaml(path, MOST_BYTES)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); a protocol folder needs it") from None
    except ValueError as error:
        raise InputError(f"{path}: {error}") from None
    if not isinstance(tree, dict):
        raise InputError(f"{path}: must hold keys and values at its top, found {type(tree).__name__}")
    return tree


SHORT_AXIS = "sax"
PICTURE = "picture"  # sequence of questions on one picture of a public benchmark, whose volume is CASE_IMAGES
CASE_IMAGES = "images"  # sequence, view and volume_id of case images, which belong to no study
RESERVED = ("multi", CASE_IMAGES, PICTURE)  # sequences of questions, and of no study
ANATOMY_NAME = "anatomy.yaml"
HEART = "openprotocol-1"  # the protocol whose anatomy folders without one have

Code = Annotated[str, Field(pattern=r"^[a-z0-9]{1,32}$")]  # part of a volume id, and so of file names
SequenceName = Annotated[str, Field(pattern=r"^[a-z0-9_]{1,32}$")]
Words = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f\ufffc]{1,100}$")]  # on one line of a prompt
Weight = Annotated[int, Field(gt=0, strict=True)]
Direction = Literal["left", "right", "anterior", "posterior", "superior", "inferior"]
Cascade = Literal["outward", "stack_and_layers", "weighted"]
OPPOSITE: Mapping[str, str] = {
    **{"left": "right", "anterior": "posterior", "superior": "inferior"},
    **{"right": "left", "posterior": "anterior", "inferior": "superior"},
}


class SliceAxis(Spec):
    """The axis along which a view's slices are counted: its ends, and the words of three levels."""

    first: Code
    last: Code
    levels: tuple[Words, Words, Words]

    @property
    def words(self) -> str:
        """The direction of counting in words, e.g. `base to apex`."""
        return f"{self.first} to {self.last}"

    @property
    def forward(self) -> str:
        """The `spatial_order` of a file with slices stored in the order of counting."""
        return f"{self.first}_to_{self.last}"

    @property
    def backward(self) -> str:
        """The `spatial_order` of a file with slices stored the other way round."""
        return f"{self.last}_to_{self.first}"


class DisplayConvention(Spec):
    """How a view is shown: by directions of the patient, or by a wall of the heart in degrees."""

    right: Direction | None = None  # what lies toward the right of the image
    up: Direction | None = None
    right_deg: Annotated[float, Field(ge=-180, le=180)] | None = None

    def _problems(self) -> Iterator[str]:
        if (self.right is None) != (self.up is None) or (self.right is None) == (self.right_deg is None):
            yield "expected either right and up, or right_deg; leave the others out"
        if self.right is not None and self.up in (self.right, OPPOSITE[self.right]):
            yield f"right is {self.right} and up {self.up}; expected two axes of the patient"


class View(Spec):
    """A plane in which volumes are taken."""

    words: Words
    slices: SliceAxis | None = None  # of a stack; layers of other views have no order
    display: DisplayConvention | None = None  # None: the display of its volumes is not checked


class Sequence(Spec):
    """A sequence: the prefix of its volume ids, what its phases mean, and its views in the order shown."""

    prefix: Code
    words: Words
    over_time: Literal["cycle", "first_pass", "nothing"]
    views: Annotated[tuple[Code, ...], Field(min_length=1)]
    phase: Words = "image"  # the word for a phase
    window_pct: WindowPct | None = None  # where the dataset declares no window for it

    def volume_id(self, view: str) -> str:
        """Return the name of the volume of a view, e.g. perf_sax."""
        return f"{self.prefix}_{view}"

    @property
    def volume_ids(self) -> tuple[str, ...]:
        return tuple(map(self.volume_id, self.views))

    def _problems(self) -> Iterator[str]:
        if self.window_pct is not None and not 0 <= self.window_pct[0] < self.window_pct[1] <= 100:
            yield "window_pct: expected two percentiles, low below high, both within 0..100"


class Pool(Spec):
    """A routed name of several volumes, and how the clinical selector divides a quota over them."""

    volumes: Annotated[tuple[str, ...], Field(min_length=1)]
    cascade: Cascade
    weights: Mapping[str, Weight] = {}  # by volume, for cascade `weighted`
    replaces: tuple[str, ...] = ()  # routed names that it stands for together, with the sum of their weights

    def _problems(self) -> Iterator[str]:
        expected = set(self.volumes) if self.cascade == "weighted" else set()
        if set(self.weights) != expected:
            yield f"weights: expected one for each of {sorted(expected)}, got {sorted(self.weights)}"


class Anatomy(Spec):
    """What the studies of a protocol hold; everything that names a sequence or a view comes from here."""

    words: Words  # all sequences together, e.g. cardiac MRI
    frame: Literal["heart", "patient"]  # whose directions `display` and `slices` name
    views: Annotated[Mapping[Code, View], Field(min_length=1)]
    sequences: Annotated[Mapping[SequenceName, Sequence], Field(min_length=1)]
    pools: Mapping[str, Pool] = {}
    substitutes: Mapping[str, tuple[str, ...]] = {}
    fallback: Mapping[str, tuple[str, ...]] = {}

    @cached_property
    def digest(self) -> str:
        """Digest of the content."""
        return digest_of(self.model_dump(mode="json"))

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        """Compare by digest: structures of every request are compared with this part of them."""
        return self is other or (isinstance(other, Anatomy) and self.digest == other.digest)

    @cached_property
    def volume_ids(self) -> tuple[str, ...]:
        """All legal volumes, in the order shown."""
        return tuple(name for sequence in self.sequences.values() for name in sequence.volume_ids)

    @cached_property
    def orders(self) -> tuple[str, ...]:
        """The legal values of `spatial_order`."""
        axes = [view.slices for view in self.views.values() if view.slices is not None]
        return (*dict.fromkeys(order for axis in axes for order in (axis.forward, axis.backward)), "unknown")

    @property
    def is_heart(self) -> bool:
        """Whether the studies are hearts, with the sequences of `openprotocol-1` or others."""
        return self.frame == "heart"

    def members(self, routed: str) -> tuple[str, ...]:
        """Return the volumes of a routed name."""
        return self.pools[routed].volumes if routed in self.pools else (routed,)

    def windows(self, declared: Windows) -> Windows:
        """Return the windows of a dataset, completed by those of the sequences."""
        by_sequence = {
            name: kind.window_pct for name, kind in self.sequences.items() if kind.window_pct is not None
        }
        return Windows(pct=declared.pct, by_name=by_sequence | dict(declared.by_name))

    def _problems(self) -> Iterator[str]:
        yield from self._sequence_problems()
        yield from self._view_problems()
        yield from self._routing_problems()

    def _sequence_problems(self) -> Iterator[str]:
        for name, sequence in self.sequences.items():
            if name in RESERVED:
                yield f"sequences.{name}: the name is reserved for questions; rename it"
            for view in sequence.views:
                if view not in self.views:
                    yield f"sequences.{name}.views names {view!r}; expected of {', '.join(self.views)}"
        for volume_id, count in Counter(self.volume_ids).items():
            if count > 1:
                yield f"sequences: {count} of them have a volume {volume_id!r}; give each its own prefix"

    def _view_problems(self) -> Iterator[str]:
        for name, view in self.views.items():
            display, axis = view.display, view.slices
            if display is not None and (display.right_deg is not None) != self.is_heart:
                expected = "right_deg" if self.is_heart else "right and up"
                yield f"views.{name}.display: expected {expected} with frame {self.frame!r}"
            if axis is None:
                continue
            if self.is_heart and (axis.first, axis.last) != ("base", "apex"):
                yield f"views.{name}.slices is {axis.words!r}; expected base to apex with frame 'heart'"
            if not self.is_heart and OPPOSITE.get(axis.first) != axis.last:
                legal = ", ".join(OPPOSITE)
                yield f"views.{name}.slices is {axis.words!r}; expected two opposite directions of {legal}"
            if self.is_heart and display is not None and display.right_deg != 0:
                yield f"views.{name}.display.right_deg is {display.right_deg}; expected 0 of a stack"

    def _routing_problems(self) -> Iterator[str]:
        routed = (*self.volume_ids, *self.pools)
        for name in set(self.pools) & set(self.volume_ids):
            yield f"pools.{name}: is the name of a volume; rename the pool"
        tables = [
            *((f"pools.{name}.volumes", pool.volumes, self.volume_ids) for name, pool in self.pools.items()),
            *((f"pools.{name}.replaces", pool.replaces, routed) for name, pool in self.pools.items()),
            ("substitutes", tuple(self.substitutes), routed),
            *((f"substitutes.{name}", names, routed) for name, names in self.substitutes.items()),
            ("fallback", tuple(self.fallback), routed),
            *((f"fallback.{name}", names, self.volume_ids) for name, names in self.fallback.items()),
        ]
        for where, names, legal in tables:
            for name in names:
                if name not in legal:
                    yield f"{where} names {name!r}; expected of {', '.join(legal)}"
            if len(set(names)) != len(names):
                yield f"{where} names one volume twice; name each once"


def load_anatomy(path: Path) -> Anatomy:
    """Read an anatomy; InputError names the file, the key, the value and what is expected."""
    return validated(Anatomy, read_yaml(path), f"{path}: ", f"; correct {path.name}")


@cache
def heart() -> Anatomy:
    """The anatomy of the heart, loaded once."""
    return load_anatomy(DATA / HEART / ANATOMY_NAME)


def anatomy_of(protocol: str) -> Anatomy:
    """Return the anatomy of a protocol, a shipped one by name or a folder; the heart's if it has none."""
    anatomies = {_own_anatomy(name) for name in protocols_of(protocol)}
    if len(anatomies) > 1:
        raise InputError(f"protocol {protocol!r} joins several anatomies; ask each in its own sweep")
    return anatomies.pop()


def _own_anatomy(protocol: str) -> Anatomy:
    paths = (folder / ANATOMY_NAME for folder in lineage(protocol))
    path = next((path for path in paths if path.exists()), DATA / HEART / ANATOMY_NAME)
    if path.parent == DATA / HEART:
        return heart()
    anatomy = load_anatomy(path)
    return heart() if anatomy == heart() else anatomy


def check_heart(anatomy: Anatomy, what: str) -> None:
    """Raise InputError unless studies are hearts; `what` names what is about hearts alone."""
    if not anatomy.is_heart:
        raise InputError(
            f"{what}: is about the heart, and the protocol's {ANATOMY_NAME} describes {anatomy.words}; "
            f"expected a protocol of the heart, such as {HEART}"
        )


def sequences() -> Mapping[str, Sequence]:
    """Return the sequences of the heart, which import, masks, drafts and phantoms are about."""
    return heart().sequences
