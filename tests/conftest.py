"""Rules for all tests: each begins with the usual umask; with CI set, nothing but GPU tests may skip."""

import os
from collections.abc import Generator, Iterator

import pytest

ON_CI = os.environ.get("CI", "") not in {"", "0", "false"}


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
