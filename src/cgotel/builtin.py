"""The plugins that come with cgotel: module names, loaded like any other plugin."""

MODULES = (
    "cgotel.collectors.cgroup",
    "cgotel.collectors.host",
    "cgotel.collectors.nvml",
    "cgotel.collectors.pressure",
    "cgotel.collectors.rapl",
    "cgotel.outputs.console",
    "cgotel.outputs.influx",
    "cgotel.outputs.otlp",
    "cgotel.restarts",
    "cgotel.runtimes.containerd",
    "cgotel.runtimes.cri",
    "cgotel.runtimes.docker",
    "cgotel.runtimes.podman",
    "cgotel.runtimes.systemd",
    "cgotel.watchers.cgroup_events",
    "cgotel.watchers.kernel_log",
    "cgotel.watchers.nvml",
    "cgotel.watchers.probes",
    "cgotel.watchers.processes",
    "cgotel.watchers.signals",
)
