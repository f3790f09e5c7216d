"""The system bus: calls whose answers keep their place among the signals, and the loss of the connection.

The answer to a call and a signal that PID 1 sends after it must be handled in that order. A coroutine
that awaits the answer wakes up later than the handler of the next signal, so answers are handed to a
function at once, like signals.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from cgotel.contract import Roots, SourceStatus, State, Unavailable
from cgotel.kernel.source import state_of

if TYPE_CHECKING:
    from dbus_fast import Message
    from dbus_fast.aio import MessageBus

Handler: TypeAlias = Callable[["Message"], None]

BUS = "org.freedesktop.DBus"
CONNECT_S = 5.0
ANSWER_S = 60.0  # PID 1 answers nobody while it reloads, and runs all generators then

_SOCKET = "/run/dbus/system_bus_socket"
_AT_ONCE = 64  # the bus ends a connection with too many unanswered calls, and PID 1 has other work
_MOST_PENDING = 65536


def address(roots: Roots, environ: Mapping[str, str] = os.environ) -> str:
    """The system bus's address: DBUS_SYSTEM_BUS_ADDRESS, or its socket below the host's root.

    Where the host's /proc is looked up below a folder (HOST_ROOT=/host), so is the socket.
    """
    if chosen := environ.get("DBUS_SYSTEM_BUS_ADDRESS"):
        return chosen
    root = roots.proc.removesuffix("/proc") if roots.proc.endswith("/proc") else ""
    return f"unix:path={root}{_SOCKET}"


class Bus:
    """One connection. All methods belong to the loop that `connect` ran in."""

    def __init__(self, on_signal: Handler) -> None:
        self._on_signal = on_signal
        self._bus: MessageBus | None = None
        self._waiting: dict[int, Handler] = {}
        self._later: deque[tuple[Message, Handler]] = deque()
        self._failure: Exception | None = None
        self._ended: asyncio.Task[Exception | None] | None = None

    async def connect(self, at: str) -> None:
        """Connect to the bus. Raises `Unavailable` with the reason."""
        from dbus_fast.aio import MessageBus
        from dbus_fast.errors import AuthError, InvalidAddressError

        try:
            bus = MessageBus(bus_address=at)
            await asyncio.wait_for(bus.connect(), CONNECT_S)
        except OSError as error:
            why = f"{at}: {error.strerror or error}"
            raise _unavailable(state_of(error), why, "mount the host's /run/dbus") from error
        except AuthError as error:
            raise _unavailable(State.DENIED, f"{at}: {error}", "run as a user that the bus knows") from error
        except TimeoutError as error:
            raise _unavailable(State.FAILED, f"{at}: no answer within {CONNECT_S:g} s") from error
        except (InvalidAddressError, ValueError, EOFError) as error:
            raise _unavailable(State.FAILED, f"{at}: {error}") from error
        bus.add_message_handler(self._handle)
        self._bus = bus
        self._ended = asyncio.get_running_loop().create_task(self._wait_for_end(bus))

    def call(
        self, to: str, path: str, interface: str, member: str, signature: str = "", *body: Any, then: Handler
    ) -> None:
        """Call a method; ``then`` gets the answer, be it an error, in its place among the signals.

        Nothing comes where the connection is lost first. Only so many calls are under way at a time.
        """
        from dbus_fast import Message

        assert self._bus is not None
        if len(self._later) >= _MOST_PENDING:
            raise OverflowError(f"{_MOST_PENDING} calls wait for their turn on the bus")
        message = Message(
            destination=to, path=path, interface=interface, member=member,
            signature=signature, body=list(body), serial=self._bus.next_serial(),
        )  # fmt: skip
        self._later.append((message, then))
        self._send()

    async def ask(
        self, to: str, path: str, interface: str, member: str, signature: str = "", *body: Any
    ) -> list[Any]:
        """Call a method and wait for what it returns. Raises `Unavailable` for an error or no answer."""
        answered: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

        def then(message: Message) -> None:
            if not answered.done():
                answered.set_result(message)

        self.call(to, path, interface, member, signature, *body, then=then)
        assert self._ended is not None
        either: set[asyncio.Future[Any]] = {answered, self._ended}
        done, _ = await asyncio.wait(either, timeout=ANSWER_S, return_when=asyncio.FIRST_COMPLETED)
        if answered not in done:
            why = "the bus is gone" if done else f"no answer within {ANSWER_S:g} s"
            raise _unavailable(State.GONE if done else State.FAILED, f"{member} of {to}: {why}")
        reply = answered.result()
        if is_error(reply):
            raise _unavailable(_state_of_error(reply), f"{member} of {to}: {_told(reply)}")
        return list(reply.body)

    async def match(self, **keys: str) -> None:
        """Ask the bus for signals: ``sender``, ``path``, ``interface``, ``member``, ``arg0``, ..."""
        rule = ",".join(["type='signal'", *(f"{key}='{value}'" for key, value in keys.items())])
        await self.ask(BUS, "/org/freedesktop/DBus", BUS, "AddMatch", "s", rule)

    async def lost(self) -> Exception | None:
        """Wait until the connection ends, and say by what; None where the bus closed it."""
        assert self._ended is not None
        return await asyncio.shield(self._ended)

    async def close(self) -> None:
        """End the connection. May be called twice, and without one."""
        if self._bus is not None and self._ended is not None:
            self._bus.disconnect()
            await asyncio.wait({self._ended}, timeout=CONNECT_S)
        self._bus = None
        self._waiting.clear()
        self._later.clear()

    async def _wait_for_end(self, bus: MessageBus) -> Exception | None:
        try:
            await bus.wait_for_disconnect()  # type: ignore[no-untyped-call]
        except Exception as error:  # noqa: BLE001 - whatever ended it
            return self._failure or error
        return self._failure

    def _send(self) -> None:
        while self._later and len(self._waiting) < _AT_ONCE and self._bus is not None:
            message, then = self._later.popleft()
            self._waiting[message.serial] = then
            self._bus.send(message).add_done_callback(_heed)

    def _handle(self, message: Message) -> bool:
        """Take one message, in the order of their coming. True: nobody else need look at it."""
        from dbus_fast import MessageType

        try:
            if message.message_type is MessageType.SIGNAL:
                self._on_signal(message)
            elif message.message_type in (MessageType.METHOD_RETURN, MessageType.ERROR):
                then = self._waiting.pop(message.reply_serial, None)
                if then is None:
                    return False
                then(message)
                self._send()
            else:
                return False
        except Exception as error:  # noqa: BLE001 - the library would only log it
            self._failure = error
            if self._bus is not None:
                self._bus.disconnect()  # what was seen so far stands, what follows would build on a hole
        return True


def is_error(message: Message) -> bool:
    """Whether an answer is an error."""
    return message.error_name is not None


def _told(reply: Message) -> str:
    return str(reply.body[0]) if reply.body else str(reply.error_name)


def _state_of_error(reply: Message) -> State:
    name = (reply.error_name or "").rpartition(".")[2]
    if name in ("ServiceUnknown", "NameHasNoOwner", "UnknownMethod", "UnknownObject"):
        return State.ABSENT
    return State.DENIED if name == "AccessDenied" else State.FAILED


def _unavailable(state: State, reason: str, remedy: str = "") -> Unavailable:
    return Unavailable(SourceStatus("systemd", state, reason, remedy))


def _heed(sent: asyncio.Future[None]) -> None:
    """Look at what became of a message; `Bus.lost` tells it."""
    if not sent.cancelled():
        sent.exception()
