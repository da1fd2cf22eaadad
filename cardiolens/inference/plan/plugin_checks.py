"""Parts of other packages that a sweep names, made once before anything runs."""

from cardiolens.base.entry_points import is_word
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.engine_plugin import open_engine
from cardiolens.inference.plan.control_plugin import open_control
from cardiolens.protocol.select.selector_plugin import open_selector


def check_plugins(spec: SweepSpec) -> None:
    """Make each part that asks or answers; InputError or PluginError if one cannot be used.

    Simulated readers are checked with those of this package, and report metrics where they are opened.
    """
    for selector in spec.selector:
        if selector.plugged:
            open_selector(selector.kind, selector.options)
    for control in spec.control:
        if is_word(control):
            open_control(control)
    for model in spec.model:
        if model.plugged and not model.simulated:
            open_engine(model).close()
