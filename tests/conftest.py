"""Rules for all tests.

Each begins with the usual umask. With CI set, nothing but GPU tests may skip. Property tests draw other
examples each time, there as on a user's machine; the header names the seed, and `--hypothesis-seed=N` draws
the same again.
"""

import os
import random
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings

ON_CI = os.environ.get("CI", "") not in {"", "0", "false"}

# Truth is checked, not speed: a busy machine must not fail a property. Where CI is set, hypothesis would by
# itself draw the same examples for ever.
settings.register_profile(
    "drawn_anew",
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("drawn_anew")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(2**32))


def pytest_report_header(config: pytest.Config) -> str:
    return f"--hypothesis-seed={config.option.hypothesis_seed}"


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """Verbs make the files of their process private, and tests call verbs."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if item.get_closest_marker("gpu") is None and not hasattr(report, "wasxfail"):
        _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    if ON_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped, which on CI only a GPU test may be: {report.longrepr}"
