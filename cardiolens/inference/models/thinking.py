"""Models that think and whose reasoning would be stored with their answers."""

from cardiolens.config.sweep import SweepSpec


def unseparated(spec: SweepSpec) -> list[str]:
    """Warnings for the models of a sweep that think without a `reasoning_parser`."""
    return [
        f"model {model.name} thinks before it answers, and its file names no reasoning_parser: vLLM removes "
        "the marks around its reasoning, and what it considers may be read as its answer; name the parser of "
        f"its family in conf/model/{model.name}.yaml (docs/guides/gpus.md)"
        for model in spec.model
        if model.engine == "vllm" and model.thinks and model.reasoning_parser is None
    ]
