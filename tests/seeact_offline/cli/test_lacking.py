"""What the command says where a package is missing."""

from __future__ import annotations

import pytest

from seeact_offline.files.extras import EXTRAS, install_command, missing_package


@pytest.mark.parametrize("package", EXTRAS)
def test_the_extra_that_brings_a_missing_package_is_named(package: str) -> None:
    assert missing_package(ModuleNotFoundError(name=f"{package}.nn")).endswith(
        f"run {install_command(EXTRAS[package])}"
    )


def test_a_missing_module_of_our_own_is_no_matter_of_packages() -> None:
    with pytest.raises(ModuleNotFoundError):
        missing_package(ModuleNotFoundError(name="seeact_offline.nowhere"))
