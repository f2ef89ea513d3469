"""What clients were told and shown, to be held against what is stored."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Prompted:
    """A prompt that was acknowledged."""

    session: str
    token: str
    prompt_id: str
    disposition: str


@dataclass(frozen=True)
class Replied:
    """A decision that was acknowledged."""

    session: str
    ask_id: str
    status: str


@dataclass
class Reading:
    """What one reader of one session was shown, in the order it was shown."""

    session: str
    name: str
    seen: list[tuple[int, bytes]] = field(default_factory=list)
    problem: str | None = None

    @property
    def last(self) -> int:
        """The sequence of the newest event shown."""
        return self.seen[-1][0] if self.seen else 0


@dataclass
class History:
    """Everything that all clients know."""

    created: dict[str, str] = field(default_factory=dict)
    """Session by the token it was created with."""
    prompts: list[Prompted] = field(default_factory=list)
    replies: list[Replied] = field(default_factory=list)
    ended: dict[str, str] = field(default_factory=dict)
    """Status that the end of a session was acknowledged with."""
    deleted: set[str] = field(default_factory=set)
    tried: set[str] = field(default_factory=set)
    """Tokens of all prompts, acknowledged or not."""
    readings: list[Reading] = field(default_factory=list)
    kills: Counter[str] = field(default_factory=Counter)
    """By what was killed."""
    losses: Counter[str] = field(default_factory=Counter)
    """How often a session lost its agent to us."""
    returned: list[float] = field(default_factory=list)
    """Seconds from a server's being ready to the adoption of all its agents."""
    violations: list[str] = field(default_factory=list)
    """What was seen to be wrong while it happened."""
