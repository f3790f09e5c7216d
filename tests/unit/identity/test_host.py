"""Who the host is: from its own files, also where the agent sits in a container."""

import os
import socket
from pathlib import Path

import pytest

from cgotel.identity.host import host_attributes, host_entity
from cgotel.kernel.roots import Roots

MACHINE_ID = "3d1219c7c4c5404aaa1f6d2a48adfda4"
BOOT_ID = "5db14c8c-f155-4ba8-a098-ee5fa6011d06"


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    write(
        tmp_path,
        {
            "proc/sys/kernel/hostname": "inside\n",
            "proc/sys/kernel/random/boot_id": f"{BOOT_ID}\n",
            "proc/stat": "cpu  1 2 3 4\nbtime 1796097889\nprocesses 5\n",
            "etc/machine-id": f"{MACHINE_ID}\n",
            "etc/hostname": "outside\n",
            "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n',
        },
    )
    return tmp_path


def roots(host: Path) -> Roots:
    return Roots(proc=str(host / "proc"), sys=str(host / "sys"), cgroup=None)


def test_this_machine() -> None:
    found = host_attributes(Roots(), {})
    assert found["host.name"] == socket.gethostname()
    assert found["os.type"] == "linux"
    assert found["host.id"]
    expected = {"x86_64": "amd64", "aarch64": "arm64"}
    assert found["host.arch"] == expected.get(os.uname().machine, os.uname().machine)


@pytest.mark.parametrize("variables", [{"HOST_ROOT": "{}"}, {"HOST_ROOT": "{}/"}, {"HOST_ETC": "{}/etc"}])
def test_a_container_tells_of_its_host(host: Path, variables: dict[str, str]) -> None:
    environ = {name: value.format(host) for name, value in variables.items()}
    found = host_attributes(roots(host), environ)
    assert found["host.name"] == "outside"
    assert found["host.id"] == MACHINE_ID
    assert found["os.description"] == "Debian GNU/Linux 12 (bookworm)"


def test_another_proc_leads_to_its_own_root(host: Path) -> None:
    write(host, {"proc/1/root/etc/machine-id": f"{MACHINE_ID[::-1]}\n"})
    assert host_attributes(roots(host), {})["host.id"] == MACHINE_ID[::-1]


def test_the_containers_own_id_is_never_taken_for_the_hosts(host: Path) -> None:
    assert host_attributes(roots(host), {})["host.id"] == BOOT_ID


@pytest.mark.parametrize("content", ["", "\n", "uninitialized\n", MACHINE_ID[:-1], MACHINE_ID.upper()])
def test_without_a_machine_id_the_boot_has_one(host: Path, content: str) -> None:
    write(host, {"etc/machine-id": content})
    assert host_attributes(roots(host), {"HOST_ROOT": str(host)})["host.id"] == BOOT_ID


def test_the_kernels_name_stands_in_for_a_missing_file(host: Path) -> None:
    (host / "etc/hostname").unlink()
    assert host_attributes(roots(host), {"HOST_ROOT": str(host)})["host.name"] == "inside"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("PRETTY_NAME='Alpine Linux v3.20'\n", "Alpine Linux v3.20"),
        ("PRETTY_NAME=Void\n", "Void"),
        ("PRETTY_NAME=\n", None),
        ("VERSION=12\n", None),
    ],
)
def test_a_description_as_os_release_has_it(host: Path, line: str, expected: str | None) -> None:
    write(host, {"etc/os-release": line})
    assert host_attributes(roots(host), {"HOST_ROOT": str(host)}).get("os.description") == expected


def test_what_cannot_be_read_has_no_attribute(tmp_path: Path) -> None:
    assert host_attributes(roots(tmp_path), {}).keys() == {"host.arch", "os.type"}


def test_the_entity_began_when_the_kernel_booted(host: Path) -> None:
    entity = host_entity(roots(host), {"HOST_ROOT": str(host)})
    assert (entity.kind, entity.key) == ("host", MACHINE_ID)
    assert entity.began_ns == 1796097889 * 10**9
    assert entity == host_entity(roots(host), {"HOST_ROOT": str(host)})


def test_a_binary_file_is_no_obstacle(host: Path) -> None:
    (host / "etc/os-release").write_bytes(b"PRETTY_NAME=\xff\xfe\n")
    (host / "etc/machine-id").write_bytes(b"\x00" * 32)
    found = host_attributes(roots(host), {"HOST_ROOT": str(host)})
    assert found["host.id"] == BOOT_ID
