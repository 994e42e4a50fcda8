"""What the command says where a package is missing."""

from __future__ import annotations

import pytest

from seeact_offline.cli import EXTRAS, report_missing_package
from seeact_offline.files.extras import install_command


@pytest.mark.parametrize("package", EXTRAS)
def test_the_extra_that_brings_a_missing_package_is_named(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_missing_package(ModuleNotFoundError(name=f"{package}.nn")) == 2
    assert f"run {install_command(EXTRAS[package])}" in capsys.readouterr().err


def test_a_missing_module_of_our_own_is_no_matter_of_packages() -> None:
    with pytest.raises(ModuleNotFoundError):
        report_missing_package(ModuleNotFoundError(name="seeact_offline.nowhere"))
