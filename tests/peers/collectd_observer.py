"""A Python plugin beside cgotel in collectd: writes down what other plugins get to see."""

import json
import sys

import collectd

_FOLDER = []


def config(block):
    options = {child.key: child.values[0] for child in block.children}
    _FOLDER.append(options["Folder"])
    if options["Values"]:
        collectd.register_write(written)


def write(name, record):
    with open(f"{_FOLDER[0]}/{name}.jsonl", "a") as file:
        file.write(json.dumps(record) + "\n")


def notified(notification):
    fields = ("plugin", "plugin_instance", "type", "type_instance", "severity", "message", "time", "meta")
    write("notifications", {field: getattr(notification, field) for field in fields})


def read():
    write("modules", sorted(sys.modules))


def written(values):
    if values.plugin == "cgotel" and values.type == "memory" and values.type_instance == "used":
        write(
            "values", {"instance": values.plugin_instance, "interval": values.interval, "meta": values.meta}
        )


collectd.register_config(config)
collectd.register_notification(notified)
collectd.register_read(read)
