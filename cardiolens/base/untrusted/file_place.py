"""Where the bytes of a file of an export are: a path, or a member of a zip file."""

from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from cardiolens.base.untrusted import bounded_files, zip_archive

MOST_BYTES = 2 << 30  # of a file that is held in memory
MOST_MEMBER = 512 << 20  # of a member of a zip file, which a few bytes can unpack to


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A path, and the name of a member where the path is a zip file."""

    path: str
    member: str = ""

    @property
    def name(self) -> str:
        """Path and member as one text; it may name a patient."""
        return f"{self.path}!{self.member}" if self.member else self.path

    @property
    def folder(self) -> str:
        """The folder that holds the file, within its archive too."""
        if not self.member:
            return str(Path(self.path).parent)
        return Place(self.path, str(PurePosixPath(self.member).parent)).name

    def size(self) -> int:
        """Bytes of the file; of a member, as its archive declares."""
        return zip_archive.size_of(self.path, self.member) if self.member else Path(self.path).stat().st_size

    def read(self, most: int = MOST_BYTES) -> bytes:
        """All bytes of the file; OSError or ValueError for more than `most`."""
        if self.member:
            return zip_archive.read_member(self.path, self.member, min(most, MOST_MEMBER))
        return bounded_files.read_bytes(Path(self.path), most)

    def read_start(self, most: int) -> bytes:
        """The first bytes of the file, at most `most`."""
        if not self.member:
            return bounded_files.read_start(Path(self.path), most)
        with self.open() as stream:
            return stream.read(most)

    def open(self) -> BinaryIO:
        """The file as a stream; a member is unpacked only as far as the stream is read."""
        if self.member:
            return zip_archive.open_member(self.path, self.member, MOST_MEMBER)
        return bounded_files.open_binary(Path(self.path))
