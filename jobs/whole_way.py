"""All steps on phantoms: `python jobs/whole_way.py out=FOLDER [studies=6] [seed=4711] [vendor=...]`.

A scanner's export and a folder of free-text reports become studies, draft questions, questions that two
simulated people verified on the review page, a release, and a sweep with its page. Every step runs a verb of
the package in a process of its own.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cardiolens.base.errors import InputError
from cardiolens.commands.command import begin_job, tell
from cardiolens.config.base import GivenPath, Positive, Seed, Spec
from cardiolens.config.command_words import read_words
from tests.support.dicom.spec import Vendor

MAKE = Path(__file__).resolve().parent / "make_phantom.py"
# The second person corrects one draft in so many; with one in seven, kappa is too low for the batch.
ONE_IN = 20


class Words(Spec):
    """Words of the script."""

    out: GivenPath  # an empty or new folder
    studies: Positive = 6
    seed: Seed = 4711
    vendor: Vendor = "siemens"


def main(argv: list[str]) -> int:
    """Go the whole way in an empty folder; return 0 if the last sweep is complete, 2 if a word is wrong."""
    begin_job(argv, __doc__)
    try:
        words = read_words(Words, argv)
        out = words.out.absolute()
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise InputError(f"out={out}: is not an empty folder; give a new one")
    except InputError as error:
        return tell(error)
    return whole_way(words, out)


def whole_way(words: Words, out: Path) -> int:
    """Run every step, and return the exit code of the sweep; SystemExit if a step fails."""
    cohort = ["dataset=phantom_ci", "dataset.phantom.canonical=[]"]
    cohort += [f"dataset.phantom.n_sampled={words.studies}", f"dataset.phantom.seed={words.seed}"]
    export = ["format=dicom", f"vendor={words.vendor}", f"out={out}/dicom"]
    run("a scanner's export", [str(MAKE), *cohort, *export])
    run("reports as radiologists write them", [str(MAKE), *cohort, "format=text", f"out={out}/text"])
    run("ingest", [*verb("ingest"), f"source={out}/dicom/export", f"out={out}/data", *secrets(out)])
    rejects(out / "data" / "rejects.jsonl")
    drafts = [f"reports={out}/text/reports", f"studies={out}/data/studies", f"out={out}/drafts"]
    run("questions", [*verb("questions"), *drafts, f"links={out}/links.jsonl"])
    rejects(out / "drafts" / "rejects.jsonl")
    review(out)
    release = [f"questions={out}/review/questions.jsonl", f"studies={out}/data/studies", f"out={out}/release"]
    run(
        "release",
        [*verb("release"), *release, "name=phantom", "licence=synthetic", "cohorts=dev:0.3,test:0.7"],
    )
    run("verify", [*verb("release"), f"verify={out}/release"])
    asked = [f"dataset={out}/release", "model=[oracle,uniform]", "selector=[clinical,random]", "budget=[8]"]
    return run("sweep", [*verb("sweep"), *asked, "tracker=none", "name=released"], cwd=out)


def verb(name: str) -> list[str]:
    return ["-m", f"cardiolens.{name}"]


def secrets(out: Path) -> list[str]:
    """Return the words that place the files which lead back to patients."""
    return [f"key={out}/ids.key", f"links={out}/links.jsonl"]


def run(what: str, words: list[str], cwd: Path | None = None) -> int:
    """Run a command, and print its name, its time and its last 40 lines; SystemExit if it fails."""
    began = time.monotonic()
    root = str(MAKE.parents[1])
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    print(f"== {what} ({time.monotonic() - began:.0f} s)")
    print("\n".join(done.stdout.splitlines()[-40:]))
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        raise SystemExit(done.returncode)
    return done.returncode


def rejects(path: Path) -> None:
    """Print how many entries a stage left out, by reason."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    counted = Counter(str(line.get("reason")) for line in lines)
    print(f"{len(lines)} left out: {', '.join(f'{why} {count}' for why, count in counted.most_common())}")


def review(out: Path) -> None:
    """Have two people verify every draft, blind to each other, and a third decide where they differ."""
    began = time.monotonic()
    place = f"out={out}/review"
    words = [
        *(f"questions={out}/drafts/questions.jsonl", f"studies={out}/data/studies", place, "mode=verify"),
        *("port=0", "readers=[anna,berta]", "third=clara"),
    ]
    with served(words) as links:
        pressed = {name: decide(Person(link)) for name, link in links.items()}
    print(f"== review ({time.monotonic() - began:.0f} s)")
    print(", ".join(f"{name} pressed {count} keys" for name, count in pressed.items()))
    run("review export", [*verb("review"), "export", place])


@contextmanager
def served(words: list[str]) -> Iterator[dict[str, str]]:
    """Serve a review page meanwhile, and yield the link of each person."""
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    command = [sys.executable, *verb("review"), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        try:
            printed = takewhile(lambda line: not line.startswith("pass on"), process.stdout)
            found = (re.match(r"(\w+) \(\w+\): (http\S+)/", line) for line in printed)
            yield {one[1]: one[2] for one in found if one is not None}
        finally:
            process.terminate()


class Person:
    """A simulated person who sends the requests of a browser to a link."""

    def __init__(self, link: str) -> None:
        self.link = urlsplit(link)

    def ask(self, method: str, path: str, said: Mapping[str, Any] | None = None) -> Any:
        """Send a request; return the page's answer."""
        own = self.link.netloc
        headers = {"Origin": f"http://{own}", "Content-Type": "application/json"}
        connection = HTTPConnection(own, timeout=60)
        body = json.dumps(said) if said is not None else None
        connection.request(method, f"{self.link.path}/{path}", body, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise SystemExit(f"the page of review answered {answer.status}: {content[:200]!r}")
        return json.loads(content)


def decide(person: Person) -> int:
    """Decide on every item that a person is shown; return the number of decisions.

    The simulated people cannot read reports: they accept every draft, except that the second reader corrects
    one draft in twenty. The adjudicator accepts the draft.
    """
    state = person.ask("GET", "state.json")
    pressed = 0
    while (item := state.get("item")) is not None:
        said: dict[str, Any] = {"verdict": "accept"}
        if state["reader"] == "berta" and pressed % ONE_IN == ONE_IN - 1:
            other = next(one["key"] for one in item["options"] if [one["key"]] != item["proposal"])
            said = {"verdict": "correct", "answer": [other]}
        pressed += 1
        name = f"{state['reader']}-{pressed:012d}"
        state = person.ask(
            "POST", "decide", {"id": name, "qa_id": item["qa_id"], "item": item["item"], **said}
        )
        if "error" in state:
            raise SystemExit(f"the page of review kept nothing: {state['error']}")
    return pressed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
