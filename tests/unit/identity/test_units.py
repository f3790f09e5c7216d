"""systemd's units; look-alikes that systemd would not call a unit stay plain cgroups."""

import pytest

from cgotel.identity import Identity, identify

SHAPES = {
    "init": ("/init.scope", "scope", {"systemd.unit.name": "init.scope"}),
    "top slice": ("/system.slice", "slice", {"systemd.unit.name": "system.slice"}),
    "nested slice": (
        "/system.slice/system-getty.slice",
        "slice",
        {"systemd.unit.name": "system-getty.slice", "systemd.slice.name": "system.slice"},
    ),
    "escaped slice": (
        r"/system.slice/system-systemd\x2dcryptsetup.slice",
        "slice",
        {"systemd.unit.name": r"system-systemd\x2dcryptsetup.slice", "systemd.slice.name": "system.slice"},
    ),
    "service": (
        "/system.slice/nginx.service",
        "service",
        {"systemd.unit.name": "nginx.service", "systemd.slice.name": "system.slice"},
    ),
    "template": (
        "/system.slice/system-getty.slice/getty@tty1.service",
        "service",
        {"systemd.unit.name": "getty@tty1.service", "systemd.slice.name": "system-getty.slice"},
    ),
    "escaped template": (
        r"/system.slice/system-systemd\x2dfsck.slice/systemd-fsck@dev-disk-by\x2duuid-AB\x2dCD.service",
        "service",
        {
            "systemd.unit.name": r"systemd-fsck@dev-disk-by\x2duuid-AB\x2dCD.service",
            "systemd.slice.name": r"system-systemd\x2dfsck.slice",
        },
    ),
    "name that the kernel could mistake": (
        "/system.slice/_cpu.service",
        "service",
        {"systemd.unit.name": "cpu.service", "systemd.slice.name": "system.slice"},
    ),
    "below a service": (
        "/system.slice/postgresql.service/worker",
        "cgroup",
        {"systemd.unit.name": "postgresql.service"},
    ),
    "systemd's own below a service": (
        "/system.slice/redis.service/.control",
        "cgroup",
        {"systemd.unit.name": "redis.service"},
    ),
    "plain cgroup in a slice": ("/system.slice/mine", "cgroup", {"systemd.slice.name": "system.slice"}),
    "mount": (
        "/system.slice/dev-hugepages.mount",
        "mount",
        {"systemd.unit.name": "dev-hugepages.mount", "systemd.slice.name": "system.slice"},
    ),
    "socket": (
        "/system.slice/sshd.socket",
        "socket",
        {"systemd.unit.name": "sshd.socket", "systemd.slice.name": "system.slice"},
    ),
    "swap": (
        r"/system.slice/dev-disk-by\x2duuid-1234.swap",
        "swap",
        {"systemd.unit.name": r"dev-disk-by\x2duuid-1234.swap", "systemd.slice.name": "system.slice"},
    ),
    "transient scope": (
        "/system.slice/run-u42.scope",
        "scope",
        {"systemd.unit.name": "run-u42.scope", "systemd.slice.name": "system.slice"},
    ),
    "user slice": (
        "/user.slice/user-1000.slice",
        "slice",
        {"systemd.unit.name": "user-1000.slice", "systemd.slice.name": "user.slice", "user.id": "1000"},
    ),
    "session": (
        "/user.slice/user-1000.slice/session-c2.scope",
        "session",
        {
            "systemd.unit.name": "session-c2.scope",
            "systemd.slice.name": "user-1000.slice",
            "systemd.session.id": "c2",
            "user.id": "1000",
        },
    ),
    "user manager": (
        "/user.slice/user-1000.slice/user@1000.service",
        "user_manager",
        {
            "systemd.unit.name": "user@1000.service",
            "systemd.slice.name": "user-1000.slice",
            "user.id": "1000",
        },
    ),
    "user manager's own scope": (
        "/user.slice/user-1000.slice/user@1000.service/init.scope",
        "scope",
        {"systemd.unit.name": "init.scope", "user.id": "1000"},
    ),
    "user's slice": (
        "/user.slice/user-1000.slice/user@1000.service/app.slice",
        "slice",
        {"systemd.unit.name": "app.slice", "user.id": "1000"},
    ),
    "user's service": (
        "/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service",
        "service",
        {"systemd.unit.name": "pipewire.service", "systemd.slice.name": "app.slice", "user.id": "1000"},
    ),
    "application's scope": (
        r"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-org.gnome.Maps\x2d1-77.scope",
        "scope",
        {
            "systemd.unit.name": r"app-gnome-org.gnome.Maps\x2d1-77.scope",
            "systemd.slice.name": "app.slice",
            "user.id": "1000",
        },
    ),
    "root's runtime directory": (
        "/user.slice/user-0.slice/user-runtime-dir@0.service",
        "service",
        {
            "systemd.unit.name": "user-runtime-dir@0.service",
            "systemd.slice.name": "user-0.slice",
            "user.id": "0",
        },
    ),
    "not a user": (
        "/user.slice/user-bob.slice",
        "slice",
        {"systemd.unit.name": "user-bob.slice", "systemd.slice.name": "user.slice"},
    ),
    "not a unit: a blank": ("/my app.service", "cgroup", {}),
    "not a unit: no name": ("/.service", "cgroup", {}),
    "not a slice: empty part": ("/a--b.slice", "cgroup", {}),
    "not a slice: instance": ("/a@b.slice", "cgroup", {}),
    "not a type": ("/nightly.timer", "cgroup", {}),
}


@pytest.mark.parametrize(("path", "kind", "attributes"), SHAPES.values(), ids=SHAPES)
def test_units(path: str, kind: str, attributes: dict[str, str]) -> None:
    assert identify(path) == Identity(kind, attributes)
