"""The placement of models as a table, on the terminal or as Markdown."""

from collections.abc import Iterator

from rich.table import Table

from cardiolens.base.console import console, say
from cardiolens.inference.placement.placement import Deployment, Placement, schedule

COLUMNS = ("begins", "model", "tensor parallel", "replicas", "GPUs", "hours", "GPU hours", "at most", "why")
_CAPTION = (
    "begins, hours: from declared rates, if each beginning of a prompt is computed once and replies are as "
    "long as expected; at most: GPU hours if no prompt token came from a cache and every reply were full"
)


def show_placement(placement: Placement) -> None:
    """Print one row per model, the estimated total, and the models that cannot run."""
    table = Table(title=cluster_of(placement), title_justify="left", caption=_CAPTION, caption_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("model", "why") else "right")
    for row in placement_rows(placement):
        table.add_row(*row)
    if placement.waves:
        console.print(table)
    if placement.gpu_hours:
        hours = schedule(placement).seconds / 3600
        say(f"estimate: {hours:.2g} hours, {placement.gpu_hours:.2g} GPU hours")
    for refusal in placement.refusals:
        say(f"cannot run: {refusal.model}: {refusal.reason}")


def placement_rows(placement: Placement) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row in the order of COLUMNS; models in the order in which they begin."""
    begins = schedule(placement).begins
    for deployment in sorted(placement.deployments, key=lambda deployment: begins[deployment.model]):
        yield (
            f"{begins[deployment.model] / 3600:.2g}",
            deployment.model,
            _split(deployment),
            str(deployment.replicas),
            f"{deployment.gpus:g}",
            *_cost(deployment),
        )


def cluster_of(placement: Placement) -> str:
    """The title of the table: the GPUs of each node."""
    gpus = [f"{node.gpus} x {node.gpu_memory_gib:g} GiB" for node in placement.nodes]
    return f"Placement on {' + '.join(gpus) or 'no GPU'}"


def _split(deployment: Deployment) -> str:
    """Tensor parallel size, and the number of pipeline stages if there are several."""
    return (
        f"{deployment.tensor_parallel} x {deployment.pipeline_parallel}"
        if deployment.spans_nodes
        else str(deployment.tensor_parallel)
    )


def _cost(deployment: Deployment) -> tuple[str, str, str, str]:
    if not deployment.gpus:
        return "-", "-", "-", deployment.reason
    most = deployment.gpus * deployment.most_seconds / 3600
    hours = deployment.seconds / 3600
    return f"{hours:.2g}", f"{deployment.gpu_hours:.2g}", f"{most:.2g}", deployment.reason
