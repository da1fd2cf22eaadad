"""Runs of Weights & Biases with fixed ids: mirroring again replaces them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from cardiolens.base.digest import digest_of
from cardiolens.config.steps import TrackerSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.places import Run

JobType = Literal["sweep", "arm", "model"]


@dataclass(frozen=True, slots=True)
class WandbGroup:
    """The runs of W&B of one sweep, and their common configuration."""

    folder: Path
    tracker: TrackerSpec
    config: Mapping[str, object]

    @classmethod
    def of(cls, run: Run, spec: SweepSpec, tracker: TrackerSpec, protocol: str, studies: int) -> "WandbGroup":
        """The group of a run, configured with the number of its studies."""
        config = {
            "experiment": spec.name,
            "protocol": protocol,
            "dataset": spec.dataset.name,
            "studies": studies,
        }
        return cls(run.root, tracker, config)

    def open(
        self,
        job_type: JobType,
        name: str | None = None,
        *,
        key: Sequence[str] = (),
        tags: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
    ) -> Any:
        """Open a run of W&B; its id is a digest of the run's folder and `key`."""
        import wandb

        return wandb.init(
            project=self.tracker.project,
            entity=self.tracker.entity,
            mode=self.tracker.mode,
            dir=str(self.folder),
            id=digest_of([self.folder.name, *key])[:16],
            name=name or self.folder.name,
            group=self.folder.name,
            job_type=job_type,
            tags=list(tags),
            config={**self.config, **(config or {})},
            # how far a model is goes on where it stopped; everything else is said anew, over what was there
            resume="allow" if self.tracker.mode == "online" and job_type == "model" else None,
            reinit="create_new",
            settings=_settings(),
        )

    @contextmanager
    def writing(self, job_type: JobType, name: str | None = None, **options: Any) -> Iterator[Any]:
        """Open a run of W&B and finish it. (W&B's own block prints a traceback of whatever leaves it.)"""
        run = self.open(job_type, name, **options)
        try:
            yield run
        except BaseException:
            with suppress(Exception):
                run.finish(exit_code=1)
            raise
        run.finish()


def _settings() -> Any:
    """Settings without host name, code and output: a path or a log line may hold a patient's name."""
    import wandb

    return wandb.Settings(
        console="off",
        host="unnamed",
        silent=True,
        disable_git=True,
        disable_code=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )
