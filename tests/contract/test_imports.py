"""Each mode loads what it uses and nothing heavier; the public names are those documented."""

import subprocess
import sys

import pytest

import cgotel

HEAVY = ("opentelemetry", "google.protobuf", "grpc", "pynvml", "psutil", "requests")


def modules_after(code):
    listing = "import sys; print('\\n'.join(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{listing}"], check=True, capture_output=True, text=True
    )
    return done.stderr.split()


def heavy(modules):
    return sorted({h for h in HEAVY for m in modules if m == h or m.startswith(f"{h}.")})


SNAPSHOT = """
from cgotel.cli import main
main(["snapshot", "--format", "json"], standalone_mode=False)
"""


@pytest.mark.parametrize("code", ["import cgotel", "import cgotel; cgotel.read, cgotel.hookimpl", SNAPSHOT])
def test_a_mode_without_a_backend_loads_nothing_heavy(code):
    assert heavy(modules_after(code)) == []


def test_loading_every_plugin_imports_no_backend():
    assert heavy(modules_after("from cgotel.plugins import load; load()")) == []


def test_every_public_name_can_be_had():
    for name in cgotel.__all__:
        assert getattr(cgotel, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonesuch"):
        cgotel.nonesuch  # noqa: B018
