"""Every selector and kind of budget in a plan; what cannot be planned is refused in words."""

from collections.abc import Callable

import pytest

from cardiolens import tables
from cardiolens.configure import read_spec
from cardiolens.errors import InputError
from cardiolens.plan.plan import plan
from cardiolens.select.choose import choose
from cardiolens.select.feature_store import missing_parts, read_features, write_features
from cardiolens.select.route import Route
from cardiolens.spec import SweepSpec
from cardiolens.study.shards import read_volumes
from cardiolens.study.structure import structures
from cardiolens.tasks.catalogue import load_catalogue

Sweep = Callable[..., SweepSpec]
EVERY = "selector=[clinical,random@7,uniform,all,kcenter,kmedoids]"


def frames_by_arm(spec: SweepSpec) -> dict[str, list[tuple[str, int]]]:
    planned = plan(spec)
    names = {arm.arm_id: f"{arm.selector_name}/{arm.budget}" for arm in planned.arms}
    rows = tables.read(planned.run.requests("uniform"), tables.REQUESTS).to_pylist()
    return {
        names[row["arm_id"]]: [(frame["volume_id"], frame["idx"]) for frame in row["frames"]] for row in rows
    }


def test_every_selector_plans_its_own_frames(sweep_of: Sweep):
    spec = sweep_of("model=[uniform]", "subtask=[C10]", "budget=[3,5]", EVERY)
    volumes = read_volumes(spec.store)
    (part,) = missing_parts(spec.store, volumes)
    write_features(spec.store, part)
    assert missing_parts(spec.store, volumes) == []
    found = frames_by_arm(spec)
    assert {name: len(frames) for name, frames in found.items() if not name.startswith("all")} == {
        f"{selector}/{budget}": budget
        for selector in ("clinical", "random@7", "uniform", "kcenter", "kmedoids")
        for budget in (3, 5)
    }
    assert found["all/3"] == found["all/5"]
    assert plan(spec).most_frames == {"uniform": len(found["all/3"])}
    study, features = structures(volumes)["PH-NORMAL"], read_features(spec.store, volumes)
    route = Route.of(load_catalogue("openprotocol-1")["C10"])
    for selector in spec.selector:
        if selector.looks_at_pixels:
            chosen = choose(selector, None, study, route, 5, features=features)
            assert found[f"{selector.name}/5"] == [(frame.volume_id, frame.idx) for frame in chosen.frames]


def test_a_data_driven_selector_without_features_is_refused(sweep_of: Sweep):
    with pytest.raises(InputError, match=r"features of the frames are not there .* prepare again"):
        plan(sweep_of("model=[uniform]", "subtask=[C10]", "selector=[kcenter]"))


@pytest.mark.parametrize("budget", ["0", "-4", "tokens:0", "tokens:", "frames:8", "many"])
def test_a_budget_that_is_none_is_refused(budget):
    with pytest.raises(InputError, match=rf"^budget: '?{budget}'? is neither .* \(tokens:8192\), 1 or more"):
        read_spec([f"budget=[16,{budget}]"])


def test_a_budget_in_tokens_needs_a_model_that_has_them():
    assert str(read_spec(["budget=[16,tokens:8192]"]).budget[1]) == "tokens:8192"
    with pytest.raises(InputError, match=r"budget tokens:8192 needs .* oracle is a simulated reader"):
        read_spec(["budget=[tokens:8192]", "model=[tiny,oracle]"])
