"""The part of a runner that knows the conversations of its user."""

import asyncio
from pathlib import Path

from ostler.runner.imports import finding
from ostler.runner.session_folders import SessionFolders
from ostler.wire.agents import Conversation, EarlierTalk


class OwnConversations:
    """What agents' own programs have in a home folder."""

    def __init__(self, home: Path, sessions: SessionFolders) -> None:
        self._home = home
        self._sessions = sessions

    async def conversations(self) -> list[Conversation]:
        """All of them, the newest first."""
        return await asyncio.to_thread(finding.conversations, self._home)

    async def conversation(self, agent: str, conversation_id: str) -> Conversation:
        """One of them."""
        return await asyncio.to_thread(finding.conversation, self._home, agent, conversation_id)

    async def bring(self, agent: str, conversation_id: str, session_id: str) -> EarlierTalk:
        """Copy one into the home of a session."""
        into = Path(self._sessions.home(session_id))
        return await asyncio.to_thread(finding.bring, self._home, agent, conversation_id, into)
