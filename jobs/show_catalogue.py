"""Print the models of the catalogue, and a placement for the open ones (bench/results/models.md).

    python jobs/show_catalogue.py

The hours are those of the landscape experiment on a cohort of the paper's size (constants below).
"""

from collections.abc import Iterable, Iterator, Sequence

from cardiolens.commands.command import Action, verb
from cardiolens.config.compose import read_spec
from cardiolens.config.conf_names import legal_names
from cardiolens.config.model import ModelCard, ModelSpec
from cardiolens.inference.models.identity import ships
from cardiolens.inference.placement.footprint import Candidate, Node
from cardiolens.inference.placement.placement import place
from cardiolens.show.terminal.show import COLUMNS, cluster_of, placement_rows

STUDIES = 200  # in our phantom cohort
QUESTIONS = 13_494  # in the paper
FRAMES = 16  # per question
TEXT, REPLY = 450, 64  # assumed tokens of a prompt besides its frames, and of a reply at most
CLUSTERS = (
    (Node("node-1", 8, 80.0),),
    (Node("node-1", 8, 80.0), Node("node-2", 8, 80.0)),
)
GPU_SIZES = (24, 48, 80, 141)  # GiB
FIELDS = (
    "field",
    "architecture in vLLM",
    "GiB",
    "tokens per frame",
    "context",
    f"GPUs of {' / '.join(map(str, GPU_SIZES))} GiB",
    "thinking",
    "licence",
    "verified",
)


def show(words: Sequence[str]) -> int:
    """Print the tables."""
    models = catalogue()
    for line in catalogue_table(models):
        print(line)
    for cluster in CLUSTERS:
        print()
        for line in placement_table(models, cluster):
            print(line)
    return 0


def catalogue() -> list[ModelSpec]:
    """Return all packaged models with a card: closed models first, then by field and name."""
    names = [name for name in legal_names("model") if name != "served"]
    models = [model for model in read_spec([f"model=[{','.join(names)}]"]).model if model.card is not None]
    return sorted(models, key=lambda model: (model.engine, _card(model).field, model.name))


def catalogue_table(models: Sequence[ModelSpec]) -> Iterator[str]:
    """Yield a Markdown table with one line per model."""
    yield from _table(("model", "id", *FIELDS), map(_row, models))


def placement_table(models: Sequence[ModelSpec], cluster: Sequence[Node]) -> Iterator[str]:
    """Yield a Markdown table with one line per published open model, then the total hours."""
    placement = place(cluster, candidates(models))
    yield f"### {cluster_of(placement)}"
    yield ""
    yield from _table(COLUMNS, placement_rows(placement))
    yield ""
    hours, gpu_hours = placement.seconds / 3600, placement.gpu_hours
    yield f"In all {hours:.2g} hours and {gpu_hours:.2g} GPU hours."
    yield from (f"Fits nowhere: {reason}." for reason in placement.refusals.values())


def candidates(models: Iterable[ModelSpec]) -> list[Candidate]:
    """Return the published open models, each in one precision, with the work of one arm."""
    asked = (model for model in models if _published(model) and not _card(model).precision_of)
    return [_candidate(model) for model in asked]


def _published(model: ModelSpec) -> bool:
    return model.engine == "vllm" and not ships(model.source)


def _card(model: ModelSpec) -> ModelCard:
    assert model.card is not None
    return model.card


def _candidate(model: ModelSpec) -> Candidate:
    return Candidate(
        model.name,
        "gpu",
        weight_gib=model.weight_gib or 0.0,
        billions=_card(model).parameters or 0.0,
        heads=_card(model).attention_heads,
        utilization=model.gpu_memory_utilization,
        studies=STUDIES,
        prompt_tokens=QUESTIONS * (TEXT + FRAMES * (model.image_tokens or 0)),
        output_tokens=QUESTIONS * model.max_tokens.get("standard", REPLY),
    )


def _row(model: ModelSpec) -> tuple[str, ...]:
    card = _card(model)
    pinned = "" if model.revision or not _published(model) else " (not pinned)"
    sizes = " / ".join(str(card.tensor_parallel.get(gib, "-")) for gib in GPU_SIZES)
    return (
        f"`{model.name}`",
        f"{model.source or model.served.api_model}{pinned}",
        card.field,
        card.architecture or ("closed" if model.served.api_key_env else "behind your server"),
        f"{model.weight_gib:g}" if model.weight_gib else "-",
        str(model.image_tokens or "-"),
        f"{card.context:,}" if card.context else "-",
        sizes if card.tensor_parallel else "-",
        card.thinking,
        card.licence,
        card.verified,
    )


def _table(names: Sequence[str], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(row)} |"


main = verb(__name__, __doc__, Action(None, show))
