"""The command can be started without its script on the PATH."""

import subprocess
import sys

import pytest

from miscompile import __version__

pytestmark = pytest.mark.process


def test_the_package_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "miscompile", "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["miscompile", __version__]
