"""The watcher: waits for notices, looks at the cgroups they are about, tells what it sees."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from cgotel.contract import (
    Bookmark,
    Report,
    Roots,
    SourceStatus,
    State,
    Stop,
    Timeline,
    Unavailable,
    Watcher,
    WatcherSettings,
)
from cgotel.evidence import CgroupEmptied, Gap
from cgotel.kernel import topology
from cgotel.kernel.cgroupfs import CgroupDirectory, CgroupTree
from cgotel.kernel.files import Descriptors
from cgotel.kernel.notify import Change, Notice
from cgotel.kernel.roots import cgroup_options
from cgotel.kernel.source import state_of
from cgotel.watchers.cgroup_events.due import Due
from cgotel.watchers.cgroup_events.hearing import Hearing
from cgotel.watchers.cgroup_events.member import CONTROL, FREEZE, MEMORY, NOTIFIED, PIDS, STATE, Member, text
from cgotel.watchers.cgroup_events.members import Members, Told, made, unknown
from cgotel.watchers.cgroup_events.saved import Saved, counted, decode, encode
from cgotel.watchers.cgroup_events.told import LAG_NS, SOURCE, Words

log = logging.getLogger(__name__)

_SECOND = 10**9
_POLL_NS = _SECOND
_POLL_SHARE = 20  # asking takes at most one part in so many of the time
_TELL_NS = _SECOND  # what is not urgent is told no more often than that
_CHECK_NS = 60 * _SECOND
_SAVE_NS = 60 * _SECOND
_SAVE_SOON_NS = 5 * _SECOND
_MOST_DESCRIPTORS = 4 * 65536
_OPTIONS = frozenset(("memory_localevents", "pids_localevents"))


class CgroupEventsConfig(WatcherSettings, frozen=True):
    """``[watchers.cgroup_events]``."""

    most_watches: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """inotify watches to take at most; unset: half of fs.inotify.max_user_watches. 0: poll all."""


class CgroupEvents(Watcher):
    """What memory.events, pids.events and cgroup.events of every cgroup tell, as soon as they do."""

    name = SOURCE
    Config = CgroupEventsConfig
    needs = ("a cgroup v2 mount, readable as any user",)

    config: CgroupEventsConfig

    def __init__(self, config: Any, roots: Roots, timeline: Timeline, bookmark: Bookmark) -> None:
        super().__init__(config, roots, timeline, bookmark)
        self._members: Members | None = None
        self._hearing: Hearing | None = None
        self._options: frozenset[str] = frozenset()
        self._words = Words(False, False)
        self._due = Due()
        self._poll_ns = _POLL_NS
        self._next_poll_ns = 0
        self._next_check_ns = 0
        self._next_save_ns = 0
        self._whole_ns = 0
        self._froze_ns = 0
        self._gap: Gap | None = None

    def start(self) -> None:
        mount = self.roots.cgroup
        if mount is None:
            reason = "no cgroup v2 hierarchy is mounted"
            remedy = "boot with systemd.unified_cgroup_hierarchy=1, or set HOST_CGROUP to its mount"
            raise Unavailable(SourceStatus(self.name, State.ABSENT, reason, remedy))
        now = self.timeline.now()
        descriptors = Descriptors.raised(_MOST_DESCRIPTORS).part(_MOST_DESCRIPTORS)
        try:
            tree = CgroupTree(mount, descriptors=descriptors)
        except OSError as error:
            status = SourceStatus(self.name, state_of(error), f"{mount}: {error.strerror}")
            raise Unavailable(status) from error
        self._hearing = Hearing(self.roots.proc, self.config.most_watches)
        self._members = Members(tree, self._hearing, descriptors)
        self._follow(cgroup_options(self.roots.proc))
        told, since_ns = self._remembered(now)
        self._members.admit(tree.root, now, told, since_ns)
        self._whole_ns = now
        self._next_poll_ns = self._next_save_ns = now + _SECOND
        self._next_check_ns = now + _CHECK_NS

    def watch(self, report: Report, stop: Stop) -> None:
        members, hearing = self._started()
        if self._gap is not None:
            report(self._gap)
            self._gap = None
        for member in members:
            if member.unsaid:
                self._tell(member, report)
        fd = hearing.fileno()
        try:
            while not stop.is_set():
                wait_s = max(0, self._next_ns() - self.timeline.now()) / _SECOND
                if fd is None:
                    stop.wait(wait_s)
                elif stop.wait_for(fd, wait_s):
                    self._hear(hearing.read(), report)
                self._keep_appointments(report)
        finally:
            for member in members:
                self._tell(member, report)
            self._save(self.timeline.now())

    def sources(self) -> Iterator[SourceStatus]:
        members, hearing = self._members, self._hearing
        if members is None or hearing is None:
            return
        all_of_them = list(members)
        interval_s = self._poll_ns / _SECOND
        yield hearing.status(f"{self.name}.notifications", len(members.polled), len(all_of_them), interval_s)
        for file in (MEMORY, PIDS):
            yield self._status_of(file, all_of_them)
        if unopened := dict(members.tree.unopened):
            path, error = next(iter(unopened.items()))
            reason = f"{error.strerror}: {len(unopened)} could not be opened, {path!a} among them"
            yield SourceStatus(f"{self.name}.cgroups", state_of(error), reason)

    def close(self) -> None:
        if self._members is not None:
            self._members.close()
            self._members = None
        if self._hearing is not None:
            self._hearing.close()
            self._hearing = None
        self._due = Due()

    def _started(self) -> tuple[Members, Hearing]:
        assert self._members is not None, "watch() before start()"
        assert self._hearing is not None
        return self._members, self._hearing

    def _status_of(self, file: str, members: list[Member]) -> SourceStatus:
        name = f"{self.name}.{file}"
        controller = file.partition(".")[0]
        if not any(file in member.tallies for member in members):
            reason = f"no cgroup has it: the controller {controller} is enabled nowhere below the root"
            remedy = f"write +{controller} to cgroup.subtree_control, or let systemd account for it"
            return SourceStatus(name, State.ABSENT, reason, remedy)
        if (option := f"{controller}_localevents") in self._options:
            reason = f"mounted with {option}: what happens below a cgroup is not counted in it"
            return SourceStatus(name, State.OFF, reason, f"remount cgroup2 without {option}")
        return SourceStatus(name, State.OK)

    # What happens

    def _hear(self, notices: list[Notice], report: Report) -> None:
        """Take notices: of files first, which may be gone soon, each cgroup once; then who came and went."""
        members, _ = self._started()
        touched: dict[Member, bool] = {}
        for notice in notices:
            if (member := members.of_watch(notice.watch)) is None:
                continue
            if notice.name in NOTIFIED:
                touched[member] = touched.get(member, False) or notice.name == STATE
            elif notice.name == FREEZE:
                self._froze_ns = self.timeline.now()
            elif notice.name == CONTROL and member.control_changed():
                self._controllers_changed(member)
        for member, state_changed in touched.items():
            self._touch(member, state_changed, report)
        for notice in notices:
            if notice.change & Change.OVERFLOWED:
                self._catch_up(report)
            elif notice.change & Change.OF_DIRECTORY:
                self._came_or_went(notice, report)

    def _came_or_went(self, notice: Notice, report: Report) -> None:
        members, _ = self._started()
        if (parent := members.of_watch(notice.watch)) is None:
            return
        if notice.change & Change.CREATED:
            self._came(parent, notice.name, report)
        elif notice.change & Change.REMOVED:
            self._went(parent, notice.name, report)

    def _came(self, parent: Member, name: str, report: Report) -> None:
        members, _ = self._started()
        now = self.timeline.now()
        if (known := parent.directory.children.get(name)) is not None:
            member = members.of(known)
            if member is not None and member.alive:
                return
            self._end(members.tree.drop(parent.directory, name), report, still_to_come=member)
        if (child := members.tree.add(parent.directory, name)) is not None:
            for member in members.admit(child, now, made, now):
                if member.unsaid:
                    self._tell_or_wait(member, False, report)

    def _went(self, parent: Member, name: str, report: Report) -> None:
        members, _ = self._started()
        known = parent.directory.children.get(name)
        member = None if known is None else members.of(known)
        if member is not None and not member.alive:
            self._end(members.tree.drop(parent.directory, name), report)
        else:  # it came and went before anyone could look, and may have been followed by a namesake
            path, now = text(parent.directory.child_path(name)), self.timeline.now()
            report(
                CgroupEmptied(source=SOURCE, time_ns=now, uncertainty_ns=LAG_NS, cgroup=path, removed=True)
            )

    def _end(self, gone: list[CgroupDirectory], report: Report, still_to_come: Member | None = None) -> None:
        """Cgroups are gone: tell the last that is known of them; of one the notice is still to come."""
        members, _ = self._started()
        for member in members.forget(gone):
            for piece in self._words.rises(member, final=True):
                report(piece)
            if member is not still_to_come:
                report(self._words.removed(member, self.timeline.now()))

    def _touch(self, member: Member, state_changed: bool, report: Report) -> None:
        """There is something to read: now, as all may be gone soon where the last process ended.

        Where much comes of the rest, it is read a little later.
        """
        if member.gone:
            return
        now = self.timeline.now()
        due_ns = now if state_changed else member.next_look_ns(now)
        if due_ns <= now:
            self._look(member, now, report, state_changed)
        else:
            self._due.add(member, due_ns)

    def _look(self, member: Member, now_ns: int, report: Report, state_changed: bool = False) -> None:
        """``state_changed``, and nobody wrote to cgroup.freeze, which changes cgroup.events as well."""
        members, _ = self._started()
        came_or_went = state_changed and now_ns - self._froze_ns > _TELL_NS
        ended = member.look(members.parse, now_ns, member.watch is not None, came_or_went)
        self._tell_or_wait(member, ended, report)

    def _tell_or_wait(self, member: Member, ended: bool, report: Report) -> None:
        if ended or member.urgent or (member.unsaid and member.looked_ns >= member.told_ns + _TELL_NS):
            self._tell(member, report, ended)
        elif member.unsaid:
            self._due.add(member, member.told_ns + _TELL_NS)
        if ended:
            report(self._words.emptied(member))

    def _tell(self, member: Member, report: Report, ended: bool = False) -> None:
        if member.urgent:
            self._next_save_ns = min(self._next_save_ns, self.timeline.now() + _SAVE_SOON_NS)
        for piece in self._words.rises(member, ended):
            report(piece)
        member.told_ns = member.looked_ns

    def _controllers_changed(self, parent: Member) -> None:
        """Files came in the children, whose counters begin at zero; those that went are found by looking."""
        members, _ = self._started()
        now = self.timeline.now()
        for directory in parent.directory.children.values():
            if (child := members.of(directory)) is not None:
                child.pin()
                child.begin(members.parse, now, {}, child.looked_ns)
                if child.unsaid:
                    self._due.add(child, now)

    # What is due

    def _next_ns(self) -> int:
        """When there is something to do although nothing is heard."""
        members, _ = self._started()
        times = [self._next_check_ns, self._next_save_ns]
        if (due_ns := self._due.next_ns) is not None:
            times.append(due_ns)
        if members.polled:
            times.append(self._next_poll_ns)
        return min(times)

    def _keep_appointments(self, report: Report) -> None:
        members, _ = self._started()
        now = self.timeline.now()
        for member in self._due.pop(now):
            self._look(member, self.timeline.now(), report)
        if members.polled and now >= self._next_poll_ns:
            self._poll(report)
        if now >= self._next_check_ns:
            self._next_check_ns = now + _CHECK_NS
            self._check(report)
        if now >= self._next_save_ns:
            self._next_save_ns = now + _SAVE_NS
            self._save(now)

    def _poll(self, report: Report) -> None:
        """Ask those that cannot be heard, their children first of all."""
        members, _ = self._started()
        began = self.timeline.now()
        for member in list(members.polled):
            if member.gone:
                continue
            members.attend(member, began)
            before = set(member.directory.children.values())
            self._end(members.tree.update_children(member.directory), report)
            for child in set(member.directory.children.values()) - before:
                for one in members.admit(child, self.timeline.now(), made, member.looked_ns):
                    self._tell_or_wait(one, False, report)
            if not member.gone:
                self._look(member, self.timeline.now(), report)
        spent = self.timeline.now() - began
        self._poll_ns = max(_POLL_NS, spent * _POLL_SHARE)
        self._next_poll_ns = began + self._poll_ns

    def _check(self, report: Report) -> None:
        """Compare with what is there, in case; and with how it is mounted."""
        members, _ = self._started()
        self._follow(cgroup_options(self.roots.proc))
        now = self.timeline.now()
        closed = set(members.tree.unopened)
        before = set(members.tree.walk())
        self._end(members.tree.update(), report)
        for directory in list(members.tree.walk()):
            if directory not in before and members.of(directory) is None:
                seen = {directory.path, *(above.path for above in directory.ancestors())}
                told: Told = unknown if closed & seen else made
                for member in members.admit(directory, now, told, self._whole_ns):
                    self._tell_or_wait(member, False, report)
        self._whole_ns = now

    def _catch_up(self, report: Report) -> None:
        """Notices were lost: look at everything."""
        members, _ = self._started()
        since = self._whole_ns
        self._check(report)
        for member in members:
            member.look(members.parse, self.timeline.now(), heard=False)
            self._tell_or_wait(member, False, report)
        reason = "the queue of notices overflowed (fs.inotify.max_queued_events)"
        report(Gap(source=SOURCE, time_ns=self.timeline.now(), since_ns=since, reason=reason))

    # What is kept

    def _follow(self, options: frozenset[str]) -> None:
        """Know what the files count under these mount options."""
        before, self._options = self._options, options & _OPTIONS
        members, _ = self._started()
        for member in members if before != self._options else ():
            member.look(members.parse, self.timeline.now())
            member.disregard()
        self._words = Words("memory_localevents" in options, "pids_localevents" in options)

    def _remembered(self, now_ns: int) -> tuple[Told, int]:
        """What was told before the agent was started, and when."""
        content = self.bookmark.read()
        if content is None:
            return unknown, now_ns
        try:
            saved = decode(content)
        except ValueError as error:
            log.warning("%s: what was kept of the last run cannot be read: %s", self.name, error)
            return unknown, now_ns
        since_ns = self.timeline.from_boottime(saved.boottime_ns)
        if saved.boot != topology.boot_id(self.roots.proc) or saved.options != tuple(sorted(self._options)):
            return unknown, now_ns
        reason = "nobody looked: cgroups that emptied or went meanwhile are not told"
        self._gap = Gap(source=SOURCE, time_ns=now_ns, since_ns=min(since_ns, now_ns), reason=reason)
        return saved.told, since_ns

    def _save(self, now_ns: int) -> None:
        members, _ = self._started()
        boot = topology.boot_id(self.roots.proc)
        if not boot:
            return
        saved = Saved(
            boot=boot,
            boottime_ns=now_ns - self.timeline.from_boottime(0),
            options=tuple(sorted(self._options)),
            whole=not members.tree.unopened,
            counts=counted(members),
        )
        self.bookmark.write(encode(saved))
