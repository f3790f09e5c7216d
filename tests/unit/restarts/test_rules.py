"""What peers get wrong, and what only one source can tell apart: each a short case of its own."""

from __future__ import annotations

import msgspec
import pytest
from tests.unit.restarts.said import (
    PID,
    action,
    at,
    ended,
    exited,
    killed_by,
    oom_kill,
    rose,
    workload,
)

from cgotel.evidence import (
    AnyEvidence,
    Fault,
    GpuMemory,
    GpuXid,
    HostState,
    LastWords,
    OomMark,
    PidsEvents,
    ProbeResult,
    RunStarted,
    RuntimeState,
    Signal,
    UnitResult,
    UserspaceOom,
    Workload,
)
from cgotel.restarts.case import Case, Exit
from cgotel.restarts.classify import classify
from cgotel.restarts.verdict import Verdict

MODEL = workload()
OWN = MODEL.cgroup or ""
UNIT = Workload(
    runtime="systemd", id="db.service", name="db.service", cgroup="/system.slice/db.service", pid=PID
)
DEAF = {"kernel_log": "no", "signals": "no", "processes": "no", "cgroup_events": "no"}


def judge(
    *evidence: AnyEvidence, of: Workload = MODEL, silent: dict[str, str] | None = None, **end: object
) -> Verdict:
    exit_ = Exit(workload=of, ended_ns=at(0), began_ns=at(-7200), source="docker", **end)  # type: ignore[arg-type]
    return classify(Case(exit=exit_, evidence=evidence, silent=silent or {}))


def state(of: Workload = MODEL, **said: object) -> RuntimeState:
    return RuntimeState(source=of.runtime, time_ns=at(0.1), workload=of, **said)  # type: ignore[arg-type]


def unit(result: str, **said: object) -> UnitResult:
    return UnitResult(source="systemd", time_ns=at(0.05), workload=UNIT, result=result, **said)  # type: ignore[arg-type]


def by_kernel(seconds: float = -0.01, pid: int = PID) -> Signal:
    return Signal(
        source="signals",
        time_ns=at(seconds),
        signal=9,
        code=128,
        pid=pid,
        sender_pid=pid,
        sender_comm="python3",
    )


def mark(seconds: float = -0.01, pid: int = PID) -> OomMark:
    return OomMark(source="signals", time_ns=at(seconds), pid=pid)


def verdict(found: Verdict) -> tuple[str, str]:
    return found.cause, found.sureness


def test_oomkilled_with_exit_143_from_a_cumulative_counter() -> None:
    """kubernetes/kubernetes#140716"""
    found = judge(
        oom_kill(-5400, MODEL, pid=77),
        rose(-5400, OWN, oom=1, oom_kill=1),
        killed_by(-31, MODEL, "runc", 15, "/system.slice/containerd.service"),
        exited(0, OWN, code=143),
        state(oom_killed=True, reason="OOMKilled", code=143),
        code=143,
    )
    assert verdict(found) == ("requested_stop", "confirmed")


def test_oomkilled_with_exit_0() -> None:
    """kubernetes/kubernetes#104454"""
    found = judge(
        oom_kill(-40, MODEL, pid=77), exited(0, OWN, code=0), state(oom_killed=True, code=0), code=0
    )
    assert verdict(found) == ("completed", "confirmed")
    assert "python3 of it 40 s before" in found.contributing[0]


def test_137_with_reason_error_is_memory_where_the_kernel_says_so() -> None:
    """kubernetes/kubernetes#122256"""
    found = judge(
        oom_kill(-0.01, MODEL),
        exited(0, OWN, signal=9),
        state(oom_killed=False, reason="Error", code=137),
        code=137,
    )
    assert verdict(found) == ("cgroup_oom", "confirmed")


def test_a_member_of_an_oom_group_is_told_as_that() -> None:
    """kubernetes/kubernetes#117070"""
    mine = msgspec.structs.replace(oom_kill(-0.01, MODEL), group=True)
    found = judge(oom_kill(-0.02, MODEL, pid=77), mine, exited(0, OWN, signal=9), code=137)
    assert verdict(found) == ("cgroup_oom", "confirmed")
    assert any("memory.oom.group" in finding.text for finding in found.supporting)


def test_who_asked_for_memory_is_not_who_was_killed() -> None:
    """DataDog/datadog-agent#28939: the trigger lived on in another container."""
    kill = msgspec.structs.replace(
        oom_kill(-0.01, workload(2), pid=99),
        trigger_pid=PID,
        trigger_comm="python3",
        limit_cgroup="/ai.slice",
    )
    found = judge(kill, exited(0, OWN, code=1), code=1)
    assert verdict(found) == ("application_error", "confirmed")


def test_what_a_neighbour_below_the_parent_counted_is_not_mine() -> None:
    """WingedGuardian/GENesis-AGI#1775"""
    found = judge(
        rose(-0.01, "/system.slice", oom=1, oom_kill=1),
        exited(0, OWN, signal=9),
        code=137,
        silent={"signals": "no"},
    )
    assert verdict(found) == ("unknown", "unknown")
    assert "signals" in found.missing


def test_a_host_that_ran_out_is_not_given_a_containers_advice() -> None:
    """skypilot-org/skypilot#10551"""
    kill = msgspec.structs.replace(oom_kill(-0.01, MODEL), constraint="none", limit_cgroup=None)
    found = judge(kill, rose(-0.01, OWN, oom_kill=1), exited(0, OWN, signal=9), code=137)
    assert verdict(found) == ("global_oom", "confirmed")
    assert found.limit_cgroup is None
    assert "the host ran out" in found.advice


@pytest.mark.parametrize("flag", [True, False])
def test_a_runtimes_flag_alone_decides_nothing(flag: bool) -> None:
    found = judge(state(oom_killed=flag, code=137), code=137, silent=DEAF)
    assert verdict(found) == ("unknown", "unknown")
    assert found.missing.keys() == DEAF.keys()


def test_the_tracepoints_and_the_counters_replace_a_silent_kernel_log() -> None:
    found = judge(
        by_kernel(),
        mark(),
        rose(-0.01, OWN, oom=1, oom_kill=1),
        exited(0, OWN, signal=9),
        code=137,
        silent={"kernel_log": "no"},
    )
    assert verdict(found) == ("cgroup_oom", "confirmed")


def test_a_mark_without_a_kill_is_no_oom() -> None:
    """A task that is ending already is only marked: no line, no count, no SIGKILL (mm/oom_kill.c)."""
    found = judge(mark(), exited(0, OWN, code=3), code=3)
    assert verdict(found) == ("application_error", "confirmed")


def test_code_128_without_a_mark_is_no_oom() -> None:
    """A pid namespace that ends looks like that."""
    found = judge(by_kernel(), exited(0, OWN, signal=9), code=137)
    assert found.cause == "unknown"
    assert found.excluded == ("memory",)


def test_a_shell_that_passes_its_childs_death_on_is_told_as_that() -> None:
    found = judge(oom_kill(-0.05, MODEL, pid=77), exited(0, OWN, code=137), code=137)
    assert found.cause == "cgroup_oom"
    assert "its child" in found.because


def test_a_child_that_was_killed_long_before_is_no_cause() -> None:
    found = judge(oom_kill(-60, MODEL, pid=77), exited(0, OWN, code=137), code=137)
    assert found.cause == "application_error"


def test_a_data_loader_that_lost_its_worker_failed_by_itself() -> None:
    words = LastWords(
        source="docker",
        time_ns=at(0),
        workload=MODEL,
        pattern="dataloader_worker_killed",
        meaning="host_memory",
    )
    found = judge(oom_kill(-2, MODEL, pid=77), words, exited(0, OWN, code=1), code=1)
    assert found.cause == "application_error"
    assert len(found.contributing) == 2


def test_kill_9_from_a_shell_names_the_shell() -> None:
    sent = killed_by(-0.001, MODEL, "bash", 9, "/user.slice/user-1000.slice/session-3.scope")
    found = judge(sent, exited(0, OWN, signal=9), code=137)
    assert verdict(found) == ("killed_externally", "confirmed")
    assert found.by == "bash"
    assert found.excluded == ("memory",)


def test_a_supervisor_inside_is_told_as_its_own() -> None:
    found = judge(
        killed_by(-0.001, MODEL, "gunicorn", 9, f"{OWN}/workers"), exited(0, OWN, signal=9), code=137
    )
    assert found.cause == "killed_externally"
    assert "a process of its own" in found.because


@pytest.mark.parametrize("comm", ["earlyoom", "systemd-oomd"])
def test_a_process_of_the_container_that_calls_itself_a_daemon_is_none(comm: str) -> None:
    found = judge(killed_by(-0.001, MODEL, comm, 9, OWN), exited(0, OWN, signal=9), code=137)
    assert found.cause == "killed_externally"


def test_a_daemon_that_says_so_and_was_seen_is_confirmed() -> None:
    told = UserspaceOom(source="systemd", time_ns=at(-0.5), by="systemd-oomd", cgroup="/system.slice")
    found = judge(told, exited(0, OWN, signal=9), code=137)
    assert verdict(found) == ("userspace_oom", "confirmed")
    assert found.by == "systemd-oomd"


def test_docker_kill_is_a_request() -> None:
    found = judge(action(-0.1, MODEL, "kill", 9), exited(0, OWN, signal=9), code=137)
    assert verdict(found) == ("requested_stop", "confirmed")
    assert found.because == "it was ended on request, by SIGKILL at once"


@pytest.mark.parametrize("number", [1, 10])
def test_a_signal_that_is_asked_of_the_living_is_no_stop(number: int) -> None:
    found = judge(action(-1, MODEL, "kill", number), exited(0, OWN, code=1), code=1)
    assert found.cause == "application_error"


def test_a_stop_of_the_run_before_is_no_request_of_this_one() -> None:
    found = judge(action(-7300, MODEL, "kill", 15), exited(0, OWN, code=1), code=1)
    assert found.cause == "application_error"


def test_an_oom_in_the_time_of_grace_is_an_oom() -> None:
    found = judge(action(-5, MODEL, "kill", 15), oom_kill(-0.01, MODEL), exited(0, OWN, signal=9), code=137)
    assert found.cause == "cgroup_oom"


def test_a_shim_that_died_makes_its_137_worth_nothing() -> None:
    sent = killed_by(-0.01, MODEL, "runc", 9, "/system.slice/containerd.service")
    found = judge(action(-0.02, MODEL, "shim_died"), sent, code=137)
    assert found.cause == "unknown"
    assert "shim" in found.because


def test_a_stop_job_of_a_containers_scope_is_no_request() -> None:
    scope = Workload(runtime="systemd", id="docker-x.scope", name="docker-x.scope", cgroup=OWN)
    told = UnitResult(source="systemd", time_ns=at(0.1), workload=scope, result="success", job="stop")
    found = judge(told, exited(0, OWN, code=1), code=1)
    assert found.cause == "application_error"


def test_results_of_other_runs_of_a_unit_have_no_say() -> None:
    other = msgspec.structs.replace(unit("oom-kill", signal=9), workload=msgspec.structs.replace(UNIT, pid=7))
    found = judge(other, unit("exit-code", code=3), exited(0, UNIT.cgroup, code=3), of=UNIT, code=3)
    assert verdict(found) == ("application_error", "confirmed")


@pytest.mark.parametrize(
    ("result", "signal", "job", "cause"),
    [
        ("watchdog", 6, "", "watchdog"),
        ("success", 15, "stop", "requested_stop"),
        ("core-dump", 11, "", "crash"),
        ("signal", 6, "", "crash"),
        ("oom-kill", 15, "", "unknown"),
    ],
)
def test_what_systemd_says_of_its_services(result: str, signal: int, job: str, cause: str) -> None:
    found = judge(
        unit(result, signal=signal, job=job), exited(0, UNIT.cgroup, signal=signal), of=UNIT, signal=signal
    )
    assert found.cause == cause


def test_systemd_that_ends_the_rest_after_an_oom_kill_is_told_with_the_limit() -> None:
    kill = msgspec.structs.replace(
        oom_kill(-0.3, MODEL, pid=77), cgroup=UNIT.cgroup, limit_cgroup=UNIT.cgroup
    )
    found = judge(
        unit("oom-kill", signal=15, oom_policy="stop"),
        kill,
        exited(0, UNIT.cgroup, signal=15),
        of=UNIT,
        signal=15,
    )
    assert verdict(found) == ("cgroup_oom", "confirmed")
    assert found.limit_cgroup == UNIT.cgroup


def test_an_unhealthy_container_that_was_restarted_is_a_health_check() -> None:
    found = judge(
        action(-8, MODEL, "health_status: unhealthy"),
        action(-3, MODEL, "kill", 15),
        exited(0, OWN, signal=9),
        action(0.3, MODEL, "restart"),
        code=137,
    )
    assert found.cause == "health_check"


def test_an_unhealthy_container_that_is_cleared_away_was_stopped() -> None:
    status = msgspec.structs.replace(action(-0.4, MODEL, "health_status"), reason="unhealthy")
    evidence = (status, action(-0.1, MODEL, "kill", 9))
    assert judge(*evidence, exited(0, OWN, signal=9), code=137).cause == "requested_stop"


PODMAN = Workload(runtime="podman", id="a", name="model", cgroup=OWN, pid=PID)
FAILED = ProbeResult(source="podman", time_ns=at(-0.3), workload=PODMAN, ok=False, failures=1)


def by_podman(seconds: float, what: str) -> AnyEvidence:
    return msgspec.structs.replace(action(seconds, PODMAN, what), source="podman")


def test_podman_kills_at_once_what_it_holds_for_unhealthy() -> None:
    sent = killed_by(-0.02, PODMAN, "crun", 9, "/system.slice/podman.service")
    told = (FAILED, sent, exited(0, OWN, signal=9))
    assert judge(*told, by_podman(0.03, "kill"), of=PODMAN, code=137).cause == "health_check"
    assert judge(*told, by_podman(2, "remove"), of=PODMAN, code=137).cause == "requested_stop"


def test_podman_calls_what_its_policy_does_a_restart() -> None:
    found = judge(exited(0, OWN, code=1), by_podman(1.4, "restart"), of=PODMAN, code=1)
    assert found.cause == "application_error"


def test_a_run_that_was_over_before_anyone_asked_has_the_last_to_leave_for_its_main_process() -> None:
    short = msgspec.structs.replace(MODEL, pid=None)
    sent = msgspec.structs.replace(killed_by(-0.02, MODEL, "sh", 9, "/user.slice"), pid=649)
    child = exited(-0.05, OWN, pid=700, code=0)
    found = judge(sent, child, exited(0, OWN, pid=649, signal=9), of=short, code=137)
    assert verdict(found) == ("killed_externally", "confirmed")


def test_a_last_process_that_ended_otherwise_than_was_reported_is_not_the_main_one() -> None:
    short = msgspec.structs.replace(MODEL, pid=None)
    late = exited(0.1, OWN, pid=700, signal=9)
    found = judge(oom_kill(0.09, MODEL, pid=700), exited(0, OWN, pid=649, code=1), late, of=short, code=1)
    assert found.cause == "application_error"


def test_a_removal_after_the_end_is_no_request() -> None:
    found = judge(exited(0, OWN, code=0), action(3, MODEL, "remove"), code=0)
    assert found.cause == "completed"


def test_what_never_became_the_program_could_not_start() -> None:
    runc = msgspec.structs.replace(exited(0, OWN, code=1), comm="runc:[2:INIT]")
    assert judge(runc, code=1).cause == "start_failure"


def test_one_that_was_healthy_again_was_stopped_for_something_else() -> None:
    found = judge(
        action(-90, MODEL, "health_status: unhealthy"),
        action(-30, MODEL, "health_status: healthy"),
        action(-3, MODEL, "kill", 15),
        exited(0, OWN, code=0),
        code=0,
    )
    assert found.cause == "requested_stop"


def test_a_probe_of_ours_speaks_of_a_workload_by_its_name() -> None:
    probe = ProbeResult(
        source="probes",
        time_ns=at(-5),
        workload=Workload(runtime="", id="model", name="model"),
        ok=False,
        latency_s=2.0,
        failures=3,
    )
    found = judge(probe, action(-3, MODEL, "kill", 15), exited(0, OWN, code=143), code=143)
    assert found.cause == "requested_stop"
    unhealthy, kill = action(-8, MODEL, "health_status: unhealthy"), action(-3, MODEL, "kill", 15)
    found = judge(probe, unhealthy, kill, action(1, MODEL, "restart"), code=143)
    assert any(finding.witness == "probe" for finding in found.supporting)


def test_a_fork_that_was_refused_before_a_failure_is_the_limit_of_tasks() -> None:
    refused = PidsEvents(source="cgroup_events", time_ns=at(-1), cgroup=OWN, refused=40, since_ns=at(-2))
    assert judge(refused, exited(0, OWN, code=2), code=2).cause == "pids_limit"
    assert judge(refused, exited(0, OWN, code=0), code=0).cause == "completed"


def test_forks_of_a_neighbour_that_were_refused_are_not_its_own() -> None:
    refused = PidsEvents(
        source="cgroup_events", time_ns=at(-1), cgroup="/system.slice", refused=1, since_ns=at(-2)
    )
    assert judge(refused, exited(0, OWN, code=2), code=2).cause == "application_error"
    at_limit = msgspec.structs.replace(refused, local=True)
    assert judge(at_limit, exited(0, OWN, code=2), code=2).cause == "pids_limit"


def test_a_segfault_is_told_with_the_kernels_words() -> None:
    fault = Fault(
        source="kernel_log", time_ns=at(-0.001), pid=PID, comm="python3", what="segfault at 0 in libc.so.6"
    )
    found = judge(fault, exited(0, OWN, signal=11), code=139)
    assert verdict(found) == ("crash", "confirmed")
    assert "libc.so.6" in found.because


def test_a_start_that_failed_is_that_whatever_the_code() -> None:
    found = judge(code=127, started=False, error="exec: nonesuch: not found")
    assert found.cause == "start_failure"
    assert found.because == "exec: nonesuch: not found"


def test_a_host_that_goes_down_takes_everything_along() -> None:
    down = HostState(source="systemd", time_ns=at(-4), state="shutdown")
    found = judge(down, action(-2, MODEL, "kill", 15), exited(0, OWN, code=143), code=143)
    assert found.cause == "host_shutdown"


def test_the_consequences_of_a_death_are_not_its_cause() -> None:
    """Xid 43 and 45 follow a process that dies (nverror.h)."""
    xid = GpuXid(source="kernel_log", time_ns=at(-0.1), xid=45, device="0000:65:00", pid=PID)
    assert judge(xid, exited(0, OWN, code=1), code=1).cause == "application_error"
    fault = msgspec.structs.replace(xid, xid=31)
    assert judge(fault, exited(0, OWN, code=1), code=1).cause == "gpu_fault"


def test_an_xid_after_the_end_was_teardown() -> None:
    xid = GpuXid(source="kernel_log", time_ns=at(20), xid=31, device="0000:65:00", pid=PID)
    assert judge(xid, exited(0, OWN, code=1), code=1).cause == "application_error"


def test_words_of_gpu_memory_before_a_stop_do_not_make_it_an_oom() -> None:
    words = LastWords(
        source="docker", time_ns=at(-1), workload=MODEL, pattern="cuda_oom", meaning="gpu_memory"
    )
    full = GpuMemory(source="nvml", time_ns=at(-2), device="0", total=100, used=99)
    found = judge(words, full, action(-3, MODEL, "kill", 15), exited(0, OWN, code=1), code=1)
    assert found.cause == "requested_stop"


WORDS_OF_GPU_MEMORY = LastWords(
    source="docker", time_ns=at(-1), workload=MODEL, pattern="cuda_oom", meaning="gpu_memory"
)


def gpu_memory(used: int, cgroup: str | None) -> GpuMemory:
    return GpuMemory(source="nvml", time_ns=at(-2), device="0", total=100, used=used, cgroup=cgroup)


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([gpu_memory(99, OWN)], ("gpu_oom", "confirmed")),
        ([gpu_memory(99, None)], ("gpu_oom", "confirmed")),
        ([gpu_memory(99, "/other")], ("gpu_oom", "probable")),
        ([gpu_memory(1, "/other")], ("gpu_oom", "probable")),
        ([gpu_memory(99, OWN), gpu_memory(1, "/other")], ("gpu_oom", "confirmed")),
    ],
)
def test_only_gpus_that_a_workload_used_speak_of_its_memory(
    looks: list[GpuMemory], expected: tuple[str, str]
) -> None:
    found = judge(WORDS_OF_GPU_MEMORY, *looks, exited(0, OWN, code=1), code=1)
    assert verdict(found) == expected


def test_an_xid_that_both_the_log_and_the_driver_tell_is_one() -> None:
    logged = GpuXid(source="kernel_log", time_ns=at(-0.2), xid=62, device="00000000:65:00.0", pid=77)
    heard = GpuXid(source="nvml", time_ns=at(-0.1), xid=62, device="0000:65:00")
    assert judge(logged, heard, exited(0, OWN, code=1), code=1).cause == "application_error"


def test_an_xid_of_the_driver_alone_means_the_device_only_where_it_can_mean_nothing_else() -> None:
    words = LastWords(source="docker", time_ns=at(-1), workload=MODEL, pattern="nvrm", meaning="gpu_fault")
    for number, cause in ((79, "gpu_fault"), (62, "application_error")):
        heard = GpuXid(source="nvml", time_ns=at(-2), xid=number, device="0000:65:00")
        assert judge(words, heard, exited(0, OWN, code=1), code=1).cause == cause


def test_a_restart_with_the_same_image_is_no_redeployment() -> None:
    new = RunStarted(source="docker", time_ns=at(2), workload=workload(2))
    asked = (action(-3, MODEL, "kill", 15), exited(0, OWN, code=143))
    assert judge(*asked, new, code=143).cause == "requested_stop"
    other = RunStarted(source="docker", time_ns=at(2), workload=workload(2, image="model:2"))
    assert judge(*asked, other, code=143).cause == "redeployed"


def test_with_nothing_but_a_code_it_is_probable() -> None:
    assert verdict(judge(ended(0, MODEL, code=1), code=1, silent=DEAF)) == ("application_error", "probable")
    assert verdict(judge(code=0, silent=DEAF)) == ("completed", "probable")
    assert verdict(judge(silent=DEAF)) == ("unknown", "unknown")


def test_podman_does_not_say_which_signal_it_sent() -> None:
    assert judge(action(-2, MODEL, "kill"), exited(0, OWN, signal=9), code=137).cause == "requested_stop"
    assert judge(action(-60, MODEL, "kill"), exited(0, OWN, code=1), code=1).cause == "application_error"


def test_a_child_that_was_killed_from_inside_and_passed_on() -> None:
    sent = msgspec.structs.replace(killed_by(-0.02, MODEL, "sh", 9, OWN), pid=77)
    found = judge(sent, exited(-0.01, OWN, pid=77, signal=9), exited(0, OWN, code=137), code=137)
    assert verdict(found) == ("killed_externally", "confirmed")
    assert found.by == "sh"


@pytest.mark.parametrize(("number", "name"), [(6, "SIGABRT"), (11, "SIGSEGV")])
def test_a_shell_that_passes_a_crash_on(number: int, name: str) -> None:
    code = 128 + number
    found = judge(exited(-0.01, OWN, pid=77, signal=number), exited(0, OWN, code=code), code=code)
    assert found.cause == "crash"
    assert found.because == f"{name} ended a process of it, for something that it did itself"


def test_systemd_that_kills_its_service_was_told_to() -> None:
    sent = msgspec.structs.replace(killed_by(-0.01, UNIT, "systemd"), sender_pid=1)
    found = judge(sent, unit("signal", signal=9), exited(0, UNIT.cgroup, signal=9), of=UNIT, signal=9)
    assert found.cause == "requested_stop"


def test_containerd_gives_the_same_id_to_another_image() -> None:
    new = RunStarted(source="containerd", time_ns=at(2), workload=workload(1, image="model:2"))
    found = judge(action(-3, MODEL, "kill", 15), exited(0, OWN, code=143), new, code=143)
    assert found.cause == "redeployed"
