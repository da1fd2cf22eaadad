"""Clusters and models to be placed on them."""

from hypothesis import strategies as st

from cardiolens.inference.placement.footprint import Candidate, Node

EIGHT = (Node("a", 8, 80.0),)
TWICE_EIGHT = (Node("a", 8, 80.0), Node("b", 8, 80.0))


def model(name: str, weight_gib: float, **options: object) -> Candidate:
    values = {"billions": weight_gib / 2, "studies": 200, "prompt_tokens": 10**7, "output_tokens": 10**5}
    return Candidate(name, "gpu", weight_gib, **{**values, **options})


nodes = st.lists(
    st.builds(Node, st.just(""), st.sampled_from([0, 1, 2, 3, 4, 8]), st.sampled_from([24.0, 48.0, 80.0])),
    min_size=1,
    max_size=4,
).map(lambda found: tuple(Node(f"n{at}", one.gpus, one.gpu_memory_gib) for at, one in enumerate(found)))


@st.composite
def candidates(draw: st.DrawFn) -> tuple[Candidate, ...]:
    made = []
    for at in range(draw(st.integers(1, 8))):
        size = draw(st.sampled_from([None, None, 1, 2, 4, 16]))
        made.append(
            model(
                f"m{at}",
                draw(st.sampled_from([0.5, 4.0, 8.0, 16.0, 30.0, 61.0, 131.0, 440.0, 1400.0])),
                heads=draw(st.sampled_from([None, 12, 14, 16, 32])),
                tensor_parallel=size,
                replicas=draw(st.sampled_from([None, None, 1, 3])),
                studies=draw(st.integers(1, 20)),
                prompt_tokens=draw(st.integers(0, 10**8)),
            )
        )
    return tuple(made)
