"""Names, paths and properties of units."""

import pytest

from cgotel.runtimes.systemd.manager import _path
from cgotel.runtimes.systemd.states import (
    Details,
    is_container,
    is_watched,
    read_details,
    read_state,
    unit_of,
)

NAMES = [
    "web.service",
    "getty@tty1.service",
    r"dev-disk-by\x2duuid-1.swap",
    "0day.service",
    "a_b.scope",
    "ü.service",
]


@pytest.mark.parametrize("name", NAMES)
def test_an_object_path_leads_back_to_its_unit(name):
    assert unit_of(_path(name)) == name


def test_an_object_path_as_systemd_writes_it():
    assert _path("getty@tty1.service") == "/org/freedesktop/systemd1/unit/getty_40tty1_2eservice"
    assert unit_of("/org/freedesktop/systemd1/job/12") is None


@pytest.mark.parametrize(
    ("values", "cgroup"),
    [
        ({"ControlGroup": "/a.slice/web.service", "Slice": "b.slice"}, "/a.slice/web.service"),
        (
            {"ControlGroup": "", "Slice": "ai-batch-night.slice"},
            "/ai.slice/ai-batch.slice/ai-batch-night.slice/web.service",
        ),
        ({"ControlGroup": "", "Slice": "-.slice"}, "/web.service"),
        ({"ControlGroup": "", "Slice": ""}, None),
        ({}, None),
    ],
)
def test_a_unit_that_is_down_still_has_its_place(values, cgroup):
    assert read_details("web.service", values) == Details(cgroup, "")


def test_a_name_that_looks_like_a_kernel_file_is_escaped():
    assert read_details("_x.service", {"Slice": "-.slice"}).cgroup == "/__x.service"


def test_properties_that_are_missing_or_of_another_kind_are_not_told():
    state = read_state(
        "web.service", {"MainPID": "7", "NRestarts": None, "Result": None, "InvocationID": None}
    )
    assert (state.main_pid, state.restarts, state.result, state.invocation) == (0, None, "success", "")


@pytest.mark.parametrize(
    ("name", "watched"),
    [
        ("web.service", True), ("run-r12.scope", True), ("init.scope", False), ("session-3.scope", False),
        (f"libpod-conmon-{'ab' * 32}.scope", False), ("dev-sda.device", False), ("a.slice", False),
    ],
)  # fmt: skip
def test_what_is_watched(name, watched):
    assert is_watched(name) is watched


@pytest.mark.parametrize("prefix", ["docker", "libpod", "cri-containerd", "crio"])
def test_scopes_of_containers_are_known_by_their_names(prefix):
    assert is_container(f"{prefix}-{'0f' * 32}.scope")
    assert not is_container(f"{prefix}.scope")
