"""What clients answer to what they were asked."""

from typing import Any

import msgspec

from ostler.base.errors import OstlerError, Unprocessable
from ostler.base.logs import Log
from ostler.server.dialects.acp import asks
from ostler.server.dialects.acp.attachment import Asked, Attachment
from ostler.server.dialects.acp.attachments import Attachments
from ostler.server.dialects.acp.messages import Incoming
from ostler.server.sessions.answers import questions_of
from ostler.wire.events import PermissionData, QuestionData

log = Log(__name__)


def session_of_reply(incoming: Incoming) -> str:
    """The session that a request of ours was about, by the id of its answer."""
    return str(incoming.id).partition("/")[0]


async def take_reply(attachments: Attachments, incoming: Incoming) -> None:
    """Take what a client answered to a request of ours."""
    session_id = session_of_reply(incoming)
    attachment = attachments.get(session_id)
    asked = attachment.asked.pop(str(incoming.id), None) if attachment else None
    if attachment is None or asked is None:
        return
    result = None if incoming.result is msgspec.UNSET else incoming.result
    try:
        await _decide(attachment, asked, result)
    except asks.Withdrawn:  # the turn is being cancelled, or the client cannot show it: others may still answer
        log.info("acp.ask_withdrawn", session_id=session_id)
    except Unprocessable as error:  # no answer to what was asked, so it is asked again
        log.info("acp.answer_unfit", session_id=session_id, reason=str(error))
        if isinstance(asked.ask, QuestionData):
            attachment.post(attachment.question(asked.ask))
    except OstlerError as error:  # somebody else was faster
        log.info("acp.answer_refused", session_id=session_id, reason=str(error))


async def _decide(attachment: Attachment, asked: Asked, result: Any) -> None:
    live = attachment.live
    if isinstance(asked.ask, PermissionData):
        reply = asks.permission_reply(result)
        await live.asks.reply_permission(asked.ask.permission_id, reply, None)
        return
    try:
        answers = _answers(asked, asked.ask, result)
    except asks.Declined:
        await live.asks.answer_question(asked.ask.question_id, None, None)
        return
    if len(answers) < len(questions_of(asked.ask)):
        attachment.post(attachment.choice(asked))
    else:
        await live.asks.answer_question(asked.ask.question_id, tuple(answers), None)


def _answers(asked: Asked, question: QuestionData, result: Any) -> list[tuple[str, ...]]:
    if asked.is_form:
        return list(asks.form_answers(question, result))
    asked.answers.append(asks.choice_answer(question, len(asked.answers), result))
    return asked.answers
