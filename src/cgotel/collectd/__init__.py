"""cgotel inside collectd's Python plugin: everything behind the callbacks of ``cgotel_collectd``.

What is measured and how it is called is decided elsewhere; here is only what the daemon asks for:
options, threads, and no exception ever.
"""
