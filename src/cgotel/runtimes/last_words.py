"""Last words: the lines that programs are known to end with, and what each of them means.

A row is one message of one program in the wording of its source. Words are a witness, no verdict: an
allocator that failed is often caught and survived, and gunicorn guesses at memory for every kill.

A log is hostile text. Of it the last `MOST_LINES` lines, `MOST_BYTES` in all, are looked at, each
line to `LONGEST_LINE` characters, and no pattern repeats a repetition, so that the time is bounded.
"""

from __future__ import annotations

import re
from typing import NamedTuple

MOST_BYTES = 64 * 1024
MOST_LINES = 200
LONGEST_LINE = 2048
_MOST_TEXT = 512


class Pattern(NamedTuple):
    """One message: its name, what it looks like, and what kind of end it speaks of."""

    name: str
    regex: re.Pattern[str]
    meaning: str


class Words(NamedTuple):
    """A line that a pattern was found in, as it came, cut to 512 characters."""

    name: str
    meaning: str
    line: str


def _rows(meaning: str, **regexes: str) -> list[Pattern]:
    return [Pattern(name, re.compile(regex), meaning) for name, regex in regexes.items()]


PATTERNS: tuple[Pattern, ...] = (
    # An allocator got no memory of a GPU.
    *_rows(
        "gpu_memory",
        cuda_out_of_memory=r"CUDA out of memory\. Tried to allocate|torch(?:\.cuda)?\.OutOfMemoryError: CUDA",
        hip_out_of_memory=r"HIP out of memory\. Tried to allocate|OutOfMemoryError: HIP",
        xpu_out_of_memory=r"XPU out of memory\. Tried to allocate",
        cuda_error_out_of_memory=r"CUDA (?:driver )?error: out of memory|CUDA_ERROR_OUT_OF_MEMORY"
        r"|cudaErrorMemoryAllocation",
        hip_error_out_of_memory=r"hipErrorOutOfMemory|(?:HIP|ROCm) error: out of memory",
        cuda_malloc_failed=r"cudaMalloc failed: out of memory|unable to allocate CUDA\d+ buffer",
        hip_malloc_failed=r"hipMalloc failed: out of memory|unable to allocate ROCm\d+ buffer",
        vulkan_out_of_device_memory=r"ErrorOutOfDeviceMemory|VK_ERROR_OUT_OF_DEVICE_MEMORY"
        r"|unable to allocate Vulkan\d+ buffer",
        jax_resource_exhausted=r"RESOURCE_EXHAUSTED: Out of memory while trying to allocate"
        r"|RESOURCE_EXHAUSTED: Failed to allocate request for",
        tensorflow_gpu_oom=r"OOM when allocating tensor with shape.{0,400}device:GPU:\d",
        vllm_free_memory_below_requested=r"Free memory on device .{0,120} on startup is less than "
        r"desired GPU memory utilization",
        vllm_no_cache_blocks=r"No available memory for the cache blocks",
        vllm_kv_cache_too_small=r"KV cache is needed, which is larger than the available KV cache memory",
        sglang_not_enough_memory=r"Not enough memory\. Please try to increase --mem-fraction-static",
        cublas_alloc_failed=r"CUBLAS_STATUS_ALLOC_FAILED",
        nccl_cuda_out_of_memory=r"Cuda failure (?:2 )?'out of memory'",
        triton_gpu_out_of_memory=r"(?:failed to allocate|unable to allocate).{0,80}(?:CUDA|GPU) memory",
        tensorrt_out_of_memory=r"OutOfMemory \(Requested size was"
        r"|\[defaultAllocator\.cpp.{0,80}out of memory",
        onnxruntime_bfc_arena=r"BFCArena::AllocateRawInternal.{0,80}Failed to allocate memory",
    ),
    # The host, or the container's limit, gave no more.
    *_rows(
        "host_memory",
        torch_cpu_allocator=r"DefaultCPUAllocator: (?:can't|not enough memory)",
        tensorflow_cpu_oom=r"OOM when allocating tensor with shape.{0,400}device:CPU:\d",
        dataloader_worker_killed=r"DataLoader worker \(pid(?:\(s\))? [^)]{1,80}\) "
        r"(?:is killed by signal: Killed|exited unexpectedly)",
        dataloader_shared_memory=r"DataLoader worker \(pid(?:\(s\))? [^)]{1,80}\) "
        r"is killed by signal: Bus error"
        r"|It is possible that dataloader's workers are out of shared memory",
        torch_worker_sigkill=r"Signal 9 \(SIGKILL\) received by PID \d+|exitcode *: -9 \(pid: \d+\)",
        deepspeed_worker_killed=r"exits with return code = -(?:9|7)\b",
        python_memory_error=r"^(?:[\w.]{0,60}\.)?_?(?:ArrayMemoryError|MemoryError)(?::|$)",
        cpp_bad_alloc=r"std::bad_alloc",
        cannot_allocate_memory=r"Cannot allocate memory|\bENOMEM\b",
        go_out_of_memory=r"fatal error: runtime: (?:out of memory|cannot allocate memory)",
        rust_allocation_failed=r"memory allocation of \d+ bytes failed",
        ray_node_low_on_memory=r"killed due to the node running low on memory",
        shell_child_killed=r"^[^:]{1,200}: line \d+: +\d+ Killed\b",
    ),
    # The program's own cap was reached: no limit of the cgroup.
    *_rows(
        "heap",
        node_heap_out_of_memory=r"JavaScript heap out of memory|invalid table size Allocation failed",
        jvm_heap_space=r"java\.lang\.OutOfMemoryError: (?:Java heap space|GC overhead limit exceeded"
        r"|Metaspace|Requested array size exceeds VM limit|Direct buffer memory|Compressed class space)",
        jvm_terminating_out_of_memory=r"Terminating due to java\.lang\.OutOfMemoryError",
        dotnet_out_of_memory=r"System\.OutOfMemoryException",
        php_memory_exhausted=r"Allowed memory size of \d+ bytes exhausted",
    ),
    # A GPU, its driver or what runs on it failed.
    *_rows(
        "gpu_fault",
        cuda_ecc_uncorrectable=r"uncorrectable ECC error encountered|cudaErrorECCUncorrectable",
        cuda_illegal_address=r"CUDA error: an illegal memory access was encountered"
        r"|CUDA_ERROR_ILLEGAL_ADDRESS",
        cuda_launch_failure=r"CUDA error: unspecified launch failure|CUDA_ERROR_LAUNCH_FAILED",
        cuda_device_assert=r"CUDA error: device-side assert triggered",
        cuda_device_lost=r"CUDA error: (?:the launch timed out|device (?:is )?(?:lost|unavailable)"
        r"|all CUDA-capable devices are busy or unavailable)",
        cuda_unknown_error=r"CUDA error: unknown error|CUDA unknown error - this may be due to",
        nvml_unknown_error=r"Failed to initialize NVML: |NVML: (?:GPU is lost|Unknown Error)",
        nccl_watchdog_timeout=r"Watchdog caught collective operation timeout",
        nccl_remote_error=r"ncclRemoteError|ncclSystemError|NCCL WARN .{0,120}(?:Connection closed|Net)",
        hip_illegal_address=r"hipErrorIllegalAddress|Memory access fault by GPU node-\d+",
        rocm_gpu_hang=r"HSA_STATUS_ERROR_[A-Z_]{1,60}|GPU Hang",
        vulkan_device_lost=r"ErrorDeviceLost|VK_ERROR_DEVICE_LOST",
    ),
    # No more threads or processes.
    *_rows(
        "pids",
        jax_thread_creation_failed=r"Thread \S{1,60} creation via pthread_create\(\) failed",
        jvm_no_native_thread=r"unable to create (?:new )?native thread",
        python_cannot_start_thread=r"RuntimeError: can't start new thread",
        go_cannot_start_thread=r"runtime: failed to create new OS thread|pthread_create failed: Resource",
        openblas_thread_creation=r"blas_thread_init: pthread_create failed",
        libuv_thread_creation=r"uv_thread_create|Resource temporarily unavailable \(os error 11\)",
        fork_refused=r"fork: (?:retry: )?Resource temporarily unavailable|Cannot fork"
        r"|BlockingIOError: \[Errno 11\] Resource temporarily unavailable",
    ),
    # A program inside ended one of its own.
    *_rows(
        "supervisor",
        gunicorn_worker_timeout=r"WORKER TIMEOUT \(pid:\d+\)",
        gunicorn_worker_sigkill=r"Worker \(pid:\d+\) was sent SIGKILL",
        vllm_worker_died=r"Worker proc \S{1,60} died unexpectedly",
        vllm_engine_dead=r"EngineDeadError|EngineCore encountered (?:a fatal error|an issue)",
        sglang_scheduler_died=r"scheduler died during initialization",
        ollama_runner_terminated=r"(?:llama runner|llama-server) process "
        r"(?:has terminated|no longer running)",
        triton_stub_unhealthy=r"Stub process .{1,120} is not healthy",
        uvicorn_child_died=r"Child process \[\d+\] died",
        celery_worker_lost=r"WorkerLostError",
        broken_process_pool=r"BrokenProcessPool|A process in the process pool was terminated abruptly",
    ),
    # It could not begin.
    *_rows(
        "start",
        vllm_engine_start_failed=r"Engine core initialization failed",
        exec_not_found=r"exec: .{1,200}: (?:(?:executable file )?not found|no such file or directory)"
        r"|: command not found$",
        exec_format_error=r"[Ee]xec format error",
        exec_permission_denied=r"(?:exec|OCI runtime).{0,200}[Pp]ermission denied",
        shared_library_missing=r"error while loading shared libraries: ",
        cuda_driver_too_old=r"CUDA driver version is insufficient for CUDA runtime version",
        no_gpu_found=r"No CUDA GPUs are available|no CUDA-capable device is detected|no NVIDIA GPU detected",
        address_in_use=r"[Aa]ddress already in use|EADDRINUSE",
    ),
)


def tail(log: bytes) -> list[str]:
    """The lines that are looked at, oldest first; bytes that are no UTF-8 become U+FFFD."""
    text = log[-MOST_BYTES:].decode("utf-8", "replace")
    return [line[:LONGEST_LINE].rstrip("\r") for line in text.split("\n")[-MOST_LINES:]]


def find(log: bytes) -> list[Words]:
    """Each pattern that the end of a log matches, once, by its last line; in the order of the lines."""
    return find_in(tail(log))


def find_in(lines: list[str]) -> list[Words]:
    """`find` for lines that are cut already."""
    last: dict[str, tuple[int, Words]] = {}
    for number, line in enumerate(lines):
        for name, regex, meaning in PATTERNS:
            if regex.search(line):
                last[name] = number, Words(name, meaning, line[:_MOST_TEXT])
    return [words for _, words in sorted(last.values(), key=lambda found: found[0])]
