"""Every verb on a run says the same from any folder, or refuses: copied, its store renamed or pruned."""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort, reader

from cardiolens.commands import compare, export, judge, report, review, status, view
from cardiolens.config.sweep import SweepSpec, parse
from cardiolens.curation.review.audit import SAMPLE, draw, judged_choices, keep
from cardiolens.show.notebook.run import read_run
from cardiolens.storage import documents
from cardiolens.storage.places import Run

PART = re.compile(r"part-\d+-\w+")
LAST_REPLY = re.compile(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d_")
Main = Callable[[], int]


def _view() -> int:
    """The viewer without its server: the page and one of its scripts."""
    from cardiolens.base.errors import InputError
    from cardiolens.commands.command import print_error
    from cardiolens.config.command_words import read_words
    from cardiolens.storage.places import RunWords

    try:
        viewer = view.served_of(read_words(RunWords, sys.argv[1:]).open())
        print(sha256(viewer.index.encode()).hexdigest())
    except InputError as error:
        return print_error(error)
    return 0


# A verb, its words, and what it writes below the run; `{run}` is the folder of the run.
VERBS: dict[str, tuple[Main, tuple[str, ...], str]] = {
    "status": (status.main, ("run={run}",), ""),
    "judge": (judge.main, ("run={run}",), "verdicts/*"),
    "report": (report.main, ("run={run}",), "index.html"),
    "view": (_view, ("run={run}",), ""),
    "export": (export.main, ("run={run}",), "export/*.*"),
    "export arrow": (export.main, ("run={run}", "format=arrow"), "export/dataset/**/*.*"),
    "export inspect": (export.main, ("run={run}", "format=inspect"), "export/inspect/*"),
    "audit report": (review.main, ("report", "run={run}"), ""),
    "compare": (compare.main, ("a={run}", "b={run}"), ""),
    "judge of": (judge.main, ("run={run}", "of=errors", "model=none_of_these"), ""),
}
WITHOUT_STORE = {"compare"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run with relative paths, made in a folder with spaces and umlauts, behind a link."""
    real = tmp_path_factory.mktemp("Stationäre Fälle 1")
    link = real.with_name("der Verweis")
    link.symlink_to(real)
    make_cohort(real, 2)
    before = Path.cwd()
    os.chdir(link)
    try:
        run = Run(link / finished(relative(link)).root)
        keep(run.root / SAMPLE, draw(judged_choices(read_run(run.root)), 20, seed=0))
        yield run
    finally:
        os.chdir(before)


def relative(root: Path) -> SweepSpec:
    spec = small_spec(root, "places", model=[reader("oracle"), reader("uniform")])
    tree = json.loads(spec.model_dump_json()) | {"store": "store", "outputs": "outputs"}
    tree["dataset"] |= {"studies": ".", "questions": "questions.jsonl"}
    return parse(tree)


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., object]:
    """What a verb prints and writes from a folder; on a refusal, its one line."""

    def speak(name: str, run: Path, folder: Path, *more: str) -> tuple[int, str, dict[str, str]]:
        main, words, written = VERBS[name]
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", [name, *(word.format(run=run) for word in words), *more])
        capsys.readouterr()
        code = main()
        output = capsys.readouterr()
        files = {
            PART.sub("part", str(path.relative_to(run))): sha256(_plain(path, run)).hexdigest()
            for path in sorted(run.glob(written) if written else ())
            if path.is_file() and code != 2
        }
        text = output.err if code == 2 else re.sub(r"\s+", " ", output.out)
        return code, text.replace(str(run.parent.parent), "HOME"), files

    return speak


def _plain(path: Path, run: Path) -> bytes:
    return path.read_bytes().replace(str(run).encode(), b"RUN")


@pytest.fixture(scope="module")
def copied(made: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the run and its store, all of whose files have another time."""
    folder = shutil.copytree(home_of(made), tmp_path_factory.mktemp("copy") / "Kopie ß")
    for path in folder.rglob("*"):
        os.utime(path, (1, 1))
    return folder


def home_of(run: Run) -> Path:
    return run.root.parent.parent


@pytest.mark.full
@pytest.mark.parametrize("name", VERBS)
def test_a_verb_says_the_same_from_anywhere_or_refuses(made: Run, name: str, copied: Path, spoken) -> None:
    home, run = home_of(made), copied / "outputs" / made.root.name
    first = spoken(name, made.root, home)
    assert first[0] in (0, 1) or name == "judge of", first
    assert spoken(name, made.root, Path("/")) == first
    hidden = (home / "store").rename(home / "hidden")
    try:
        assert spoken(name, run, Path("/")) == first
        store = (copied / "store").rename(copied / "elsewhere")
        try:
            renamed = spoken(name, run, Path("/"))
            if name in WITHOUT_STORE:
                assert renamed == first
                return
            assert renamed[0] == 2
            assert renamed[1].count("\n") == 1
            assert "store=" in renamed[1] or name == "judge of"
            assert spoken(name, run, Path("/"), f"store={store}") == first
        finally:
            store.rename(copied / "store")
    finally:
        hidden.rename(home / "store")


LOST = ("judge", "report", "view", "export", "export arrow", "export inspect", "audit report")


@pytest.mark.parametrize("name", LOST)
def test_a_store_that_lost_replies_is_refused(made: Run, name: str, spoken, tmp_path: Path) -> None:
    copied = shutil.copytree(home_of(made), tmp_path / "copy")
    run = copied / "outputs" / made.root.name
    (gone,) = (copied / "store" / "completions").glob("uniform-*")
    for part in gone.glob("*.parquet"):
        part.unlink()
    code, said, _ = spoken(name, run, Path("/"))
    assert code == 2
    assert re.search(r"lacks [\d,]+ of the [\d,]+ replies that .* was judged from; put it back", said), said


def test_questions_of_another_time_are_refused(made: Run, spoken, tmp_path: Path) -> None:
    import pyarrow.compute as pc

    from cardiolens.storage import schemas, tables

    copied = shutil.copytree(home_of(made), tmp_path / "copy")
    questions = tables.read(copied / "store" / "questions", schemas.QUESTIONS)
    text = pc.binary_join_element_wise(questions["question"], "changed", " ")
    place = questions.schema.get_field_index("question")
    changed = questions.set_column(place, "question", text)
    tables.replace(copied / "store" / "questions", changed, schemas.QUESTIONS)
    code, said, _ = spoken("export arrow", copied / "outputs" / made.root.name, Path("/"))
    assert code == 2
    assert "have changed since it was judged" in said


def test_logs_of_inspect_have_the_date_of_the_last_reply(made: Run, spoken) -> None:
    _, _, files = spoken("export inspect", made.root, Path("/"))
    dates = {LAST_REPLY.match(Path(name).name)[0] for name in files}
    assert len(dates) == 1
    assert not dates.pop().startswith("1970")


def test_a_run_copied_alone_still_leads_to_its_store(made: Run, tmp_path: Path) -> None:
    run = Run(shutil.copytree(made.root, tmp_path / "deep" / "outputs" / made.root.name))
    assert documents.read_configuration(run).store.samefile(home_of(made) / "store")
    (tmp_path / "deep" / "store").mkdir()  # of the same name, with nothing of this run
    assert documents.read_configuration(run).store.samefile(home_of(made) / "store")


def test_a_run_behind_a_link_leads_to_its_store(made: Run, tmp_path: Path) -> None:
    link = tmp_path / "latest"
    link.symlink_to(made.root)
    made.made_in.rename(made.root / "kept.json")
    try:
        assert documents.read_configuration(Run(link)).store.samefile(home_of(made) / "store")
    finally:
        (made.root / "kept.json").rename(made.made_in)


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"made_in": 3}', '{"made_in": "here"}'])
def test_a_record_that_names_no_folder_is_refused(content: str, made: Run, tmp_path: Path, spoken) -> None:
    run = Run(shutil.copytree(made.root, tmp_path / made.root.name))
    run.made_in.write_text(content)
    code, said, _ = spoken("export", run.root, Path("/"))
    assert code == 2
    assert "made_in.json" in said
