"""One end of a link: calls verbs of the other end and serves its calls. Whoever owns it moves the bytes."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

import msgspec

from ostler.base.errors import InternalError, OstlerError, Unprocessable
from ostler.base.errors.runners import LinkLost
from ostler.base.ids import new_id
from ostler.base.logs import Log
from ostler.link.messages import Answer, Call, Cancel, Message, Part, Verb, error_of, failure
from ostler.wire.running import ProcessRef

P = ParamSpec("P")
T = TypeVar("T")
Send = Callable[[bytes, str], Awaitable[None]]
"""Sends a message behind those of its lane; returns when it is on its way, and raises LinkLost if it never will be."""
log = Log(__name__)
_UNDO_SECONDS = 30.0
_FINISH_SECONDS = 120.0
_MOST_CALLS = 50_000
_encode = msgspec.msgpack.Encoder(enc_hook=str).encode
_messages = msgspec.msgpack.Decoder(Message)


def _lane(process: ProcessRef | None) -> str:
    return process.session_id if process is not None else ""


class TakenBack(NamedTuple):
    """What became of a call that its caller did not want any more; the CancelledError has it for its argument."""

    is_done: bool | None
    """None if nobody knows."""
    result: Any = None

    @classmethod
    def of(cls, error: asyncio.CancelledError) -> "TakenBack":
        """That of the call that was cancelled; one that never left was not done."""
        return next((each for each in error.args if isinstance(each, cls)), cls(is_done=False))


async def even_if_late(call: Awaitable[T]) -> T:
    """For a call that cannot be undone: who takes it back when it was done comes too late, and hears what came of it.

    Raises LinkLost if nobody knows whether it was.
    """
    try:
        return await call
    except asyncio.CancelledError as error:
        back = TakenBack.of(error)
        if back.is_done is False:
            raise
        if (task := asyncio.current_task()) is not None:
            task.uncancel()
        if back.is_done is None:
            raise LinkLost(reason="nobody knows whether what was asked for was done") from error
        done: T = back.result
        return done


class Peer:
    """Calls about one session go out in the order in which they were made, and are begun as they come in.

    A caller waits until its message is on its way: so what waits to be sent is never more than one for each caller.
    """

    def __init__(self, send: Send, serve: Callable[[Call], Awaitable[Any]]) -> None:
        """`send` must keep the order of a lane; `serve` does a call and returns its result."""
        self._send = send
        self._serve = serve
        self._ids = count(1)
        self._waiting: dict[int, asyncio.Future[msgspec.Raw]] = {}
        self._serving: dict[int, asyncio.Task[None]] = {}
        self._unanswered: set[asyncio.Task[None]] = set()
        self._eased = asyncio.Event()
        self._lost: LinkLost | None = None
        self.held = 0
        """Bytes of calls of the other end whose answers are not on their way yet."""

    async def call(self, to: Part, verb: Verb, process: ProcessRef | None = None, **arguments: Any) -> Any:
        """Have a verb done by the other end; raises what it raised.

        Cancelled here, it is broken off there; `TakenBack` says whether that was in time.
        """
        number, lane = next(self._ids), _lane(process)
        packed = msgspec.Raw(_encode(verb.arguments(**arguments)))
        answer = self._expect(number)
        try:
            await self._send(_encode(Call(id=number, to=to, verb=verb.name, arguments=packed, process=process)), lane)
            return msgspec.msgpack.decode(await answer, type=verb.result)
        except msgspec.MsgspecError as error:
            raise LinkLost(
                reason=f"nobody can read the answer to '{verb.name}'; are both ends of one version?"
            ) from error
        except asyncio.CancelledError as cancelled:
            try:
                if not answer.done() or answer.cancelled():  # else it came in the same moment
                    answer = await self._broken_off(number, lane)
            except asyncio.CancelledError as again:
                again.args = (TakenBack(is_done=None),)
                raise
            cancelled.args = (_taken_back(verb, answer),)
            raise
        finally:
            self._waiting.pop(number, None)

    def _expect(self, number: int) -> "asyncio.Future[msgspec.Raw]":
        if self._lost is not None:
            raise self._lost
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        return answer

    async def _broken_off(self, number: int, lane: str) -> "asyncio.Future[msgspec.Raw]":
        """Wait until the other end has undone what it had begun, but not for ever; what it says of it."""
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        with suppress(LinkLost, TimeoutError):
            async with asyncio.timeout(_UNDO_SECONDS):
                answer = self._expect(number)
                await self._send(_encode(Cancel(id=number)), lane)
                await asyncio.wait([answer])
        return answer

    def receive(self, data: bytes) -> None:
        """Take one message of the other end; raises LinkLost if it asks for more than anybody would."""
        match _messages.decode(data):
            case Call() as call:
                self._begin(call, len(data))
            case Answer(id=number, result=result):
                if (waiting := self._waiting.get(number)) is not None and not waiting.done():
                    waiting.set_result(result)
            case Cancel(id=number):
                if (serving := self._serving.get(number)) is not None:
                    asyncio.get_running_loop().call_soon(serving.cancel)  # one that has not begun would never answer
            case failed:
                if (waiting := self._waiting.get(failed.id)) is not None and not waiting.done():
                    waiting.set_exception(error_of(failed))

    def _begin(self, call: Call, size: int) -> None:
        if len(self._unanswered) >= _MOST_CALLS:
            raise LinkLost(reason=f"the other end wants more than {_MOST_CALLS} things at once")
        if call.id in self._serving:
            raise LinkLost(reason=f"the other end used the number {call.id} twice")
        task = self._serving[call.id] = asyncio.create_task(self._answer(call), name=f"link {call.verb}")
        self._unanswered.add(task)
        self.held += size
        task.add_done_callback(partial(self._answered, size))

    def _answered(self, size: int, task: "asyncio.Task[None]") -> None:
        self._unanswered.discard(task)
        self.held -= size
        self._eased.set()

    async def eased(self, most: int) -> None:
        """Wait until calls of the other end hold no more bytes than that."""
        while self.held > most:
            self._eased.clear()
            await self._eased.wait()

    async def _answer(self, call: Call) -> None:
        message: Message = failure(call.id, InternalError(reference="cancelled"))
        try:
            message = Answer(id=call.id, result=msgspec.Raw(_encode(await self._serve(call))))
        except OstlerError as error:
            message = failure(call.id, error)
        except msgspec.DecodeError as error:
            message = failure(call.id, Unprocessable(reason=f"Nobody can read what '{call.verb}' was given: {error}."))
        except Exception as error:  # the edge of the link
            reference = new_id("err")
            log.error("link.call_failed", verb=call.verb, reference=reference, exc_info=error)
            message = failure(call.id, InternalError(reference=reference))
        finally:
            self._serving.pop(call.id, None)
            with suppress(LinkLost):
                await self._send(_encode(message), _lane(call.process))

    def lose(self, why: LinkLost) -> None:
        """The other end is gone: whoever waits for it hears that, and so does whoever calls it from now on."""
        self._lost = self._lost or why
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(why)
                answer.exception()  # whoever waited may be gone too

    async def finish(self) -> None:
        """Wait until everything that is being served has ended by itself; what hangs is broken off."""
        if self._unanswered:
            await asyncio.wait(self._unanswered, timeout=_FINISH_SECONDS)
        await self.close()

    async def close(self) -> None:
        """Break off what is being served."""
        unanswered = list(self._unanswered)
        for task in unanswered:
            task.cancel()
        await asyncio.gather(*unanswered, return_exceptions=True)


def _taken_back(verb: Verb, answer: "asyncio.Future[msgspec.Raw]") -> TakenBack:
    if not answer.done() or isinstance(answer.exception(), LinkLost):
        return TakenBack(is_done=None)
    if answer.exception() is not None:
        return TakenBack(is_done=False)
    return TakenBack(is_done=True, result=msgspec.msgpack.decode(answer.result(), type=verb.result))


class Remote:
    """An object at the other end of a peer, or of a process there."""

    def __init__(self, peer: Peer, to: Part, verbs: Mapping[str, Verb], process: ProcessRef | None = None) -> None:
        self.peer = peer
        self._to: Part = to
        self._verbs = verbs
        self._process = process

    async def call(self, name: str, /, *values: Any, **named: Any) -> Any:
        """Have one of its verbs done; an argument that is not given has the verb's own default."""
        verb = self._verbs[name]
        given = {**dict(zip(verb.arguments.__struct_fields__, values, strict=False)), **named}
        return await self.peer.call(self._to, verb, self._process, **given)


def remote(
    verb: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Remote, P], Coroutine[Any, Any, T]]:
    """A verb of a protocol, with its types, that is done as it is at the other end."""

    async def call(other: Remote, /, *values: P.args, **named: P.kwargs) -> T:
        done: T = await other.call(verb.__name__, *values, **named)
        return done

    return call
