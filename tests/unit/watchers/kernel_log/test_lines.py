"""Faults, refused forks, hung tasks, GPUs and sleep: lines as kernels and drivers print them."""

import pytest
from tests.unit.watchers.kernel_log.told import record, told

from cgotel.evidence import Evidence, Fault, ForkRejected, GpuState, GpuXid, HostState, HungTask


def said(line: str) -> Evidence:
    [evidence] = told(line)
    return evidence


def test_a_refused_fork_names_its_cgroup() -> None:
    found = said("cgroup: fork rejected by pids controller in /ai.slice/docker-77.scope")
    assert isinstance(found, ForkRejected)
    assert found.cgroup == "/ai.slice/docker-77.scope"
    apart = "cgroup: fork rejected by pids controller in \neth0: link is up\n+/a b\n"
    assert said(apart).cgroup == "/a b"
    assert said("cgroup: fork rejected by pids controller in /" + "x" * 950).cgroup is None
    assert told("cgroup: fork rejected by pids controller in ") == []


@pytest.mark.parametrize(
    ("line", "pid", "comm", "what"),
    [
        ("crash[812]: segfault at 0 ip 00007f3e21fe sp 00007ffd3a3b error 4 in libc.so[7f3+155000]",
         812, "crash", "segfault at 0 ip 00007f3e21fe sp 00007ffd3a3b error 4 in libc"),
        ("a b[c][7]: segfault at ffff ip 0 sp 0 error 14", 7, "a b[c]", "segfault at ffff"),
        ("traps: x[5] trap invalid opcode ip:401106 sp:7ffc error:0 in x[401000+1000]", 5, "x", "trap inval"),
        ("traps: x[5] general protection fault ip:401106 sp:7ffc error:0", 5, "x", "general protection"),
        ("x[5]: unhandled exception: DABT (lower EL), ESR 0x0000000092000006", 5, "x", "unhandled exception"),
    ],
)  # fmt: skip
def test_a_fault(line: str, pid: int, comm: str, what: str) -> None:
    found = said(line)
    assert isinstance(found, Fault)
    assert (found.pid, found.comm) == (pid, comm)
    assert found.what.startswith(what)
    assert len(found.what) <= 200


@pytest.mark.parametrize("comm", ["python3", "kworker/0:1+ev", "a:1 blocked fo"])
def test_a_hung_task(comm: str) -> None:
    found = said(f"INFO: task {comm}:812 blocked for more than 122 seconds.")
    assert isinstance(found, HungTask)
    assert (found.pid, found.comm, found.seconds) == (812, comm, 122)


@pytest.mark.parametrize(
    ("line", "xid", "device", "pid", "comm", "text"),
    [
        ("NVRM: Xid (PCI:0000:65:00): 79, GPU has fallen off the bus.",
         79, "0000:65:00", None, "", "GPU has fallen off the bus."),
        ("NVRM: Xid (PCI:0000:65:00 GPU-I:05 GPU-CI:00): 31, pid=812, name=python3, Ch 08, MMU Fault: x",
         31, "0000:65:00", 812, "python3", "Ch 08, MMU Fault: x"),
        ("NVRM: Xid (PCI:0000:65:00 GPU-I:05): 13, pid=812, name=a b, Graphics Exception",
         13, "0000:65:00", 812, "a b", "Graphics Exception"),
        ("NVRM: Xid (PCI:0000:0A:00): 43, pid=1234, Ch 00000008, intr 00000000",
         43, "0000:0a:00", 1234, "", "Ch 00000008, intr 00000000"),
        ("NVRM: Xid (PCI:0000:0a:00): 45, pid='<unknown>', name=<unknown>, Ch 00000010",
         45, "0000:0a:00", None, "", "Ch 00000010"),
        ("NVRM: Xid (PCI:0000:65:00): 119, pid=0, name=x, Timeout after 6s of waiting for RPC response",
         119, "0000:65:00", None, "x", "Timeout after 6s of waiting for RPC response"),
        ("NVRM: Xid (PCI:0000:65:00): 154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot)",
         154, "0000:65:00", None, "",
         "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot)"),
        ("NVRM: Xid (PCI:0000:65:00): 94, pid=5, name=x, Contained: SM (0x1). caused by previous Xid 48",
         94, "0000:65:00", 5, "x", "Contained: SM (0x1). caused by previous Xid 48"),
        ("NVRM: Xid (0000:65:00): 48, DBE", 48, "0000:65:00", None, "", "DBE"),
    ],
)  # fmt: skip
def test_an_xid_in_every_form(
    line: str, xid: int, device: str, pid: int | None, comm: str, text: str
) -> None:
    found = said(line)
    assert isinstance(found, GpuXid)
    assert (found.xid, found.device, found.pid, found.comm, found.text) == (xid, device, pid, comm, text)


def test_a_gpu_that_is_lost_without_a_number() -> None:
    found = said("NVRM: GPU 0000:65:00.0: GPU has fallen off the bus.")
    assert isinstance(found, GpuState)
    assert (found.device, found.state) == ("0000:65:00.0", "lost")


def test_lines_beside_them_say_nothing() -> None:
    assert (
        told(
            "NVRM: GPU at PCI:0000:65:00: GPU-12345678-1234-1234-1234-123456789abc\n"
            "NVRM: GPU Board Serial Number: 123\n"
            "nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 24007, Fatal, Link 12\n"
            "INFO: task x:1 is blocked on a mutex likely owned by task y:2.\n"
            "audit: blocked for more than 3 seconds.\n"
            "oom_reaper: reaped process 5 (x), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n"
            "oom_kill_process: 12 callbacks suppressed\n"
            "Out of memory and no killable processes...\n"
        )
        == []
    )


def test_sleep_and_waking() -> None:
    states = told("PM: suspend entry (deep)\nFilesystems sync: 0.003 seconds\nPM: suspend exit\n")
    assert [s.state for s in states if isinstance(s, HostState)] == ["suspend", "resume"]


def test_only_the_kernel_is_believed() -> None:
    for text in (
        "NVRM: Xid (PCI:0000:65:00): 79, x",
        "cgroup: fork rejected by pids controller in /a",
        "PM: suspend exit",
    ):
        assert told([record(text, facility=1)]) == []
