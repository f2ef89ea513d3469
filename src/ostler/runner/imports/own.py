"""The part of a runner that knows the conversations of its user."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from ostler.runner.imports import finding
from ostler.runner.session_folders import SessionFolders
from ostler.wire.agents import Conversation, EarlierTalk


class OwnConversations:
    """What agents' own programs have in a home folder."""

    def __init__(self, home: Path, sessions: SessionFolders, environ: Mapping[str, str]) -> None:
        self._home = home
        self._user_environ = environ
        self._sessions = sessions

    async def conversations(self) -> list[Conversation]:
        """All of them, the newest first."""
        return await asyncio.to_thread(finding.conversations, self._home, self._user_environ)

    async def conversation(self, agent: str, conversation_id: str) -> Conversation:
        """One of them."""
        found = finding.conversation
        return await asyncio.to_thread(found, self._home, self._user_environ, agent, conversation_id)

    async def bring(self, agent: str, conversation_id: str, session_id: str) -> EarlierTalk:
        """Copy one into the home of a session."""
        into = Path(self._sessions.home(session_id))
        bring, environ = finding.bring, self._user_environ
        return await asyncio.to_thread(bring, self._home, environ, agent, conversation_id, into)
