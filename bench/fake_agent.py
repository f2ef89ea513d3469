"""The fake agent for machines without a C compiler; fake_agent.c says what it does and why."""

import random
import sys
import time

PIECE = "tick-%07d %s"
WORDS = "the quick brown fox jumps over it "
SYLLABLES = ["ka", "lo", "min", "tre", "su", "van", "per", "di", "so", "ruk", "eln", "ost", "qui", "bar", "hef", "zy"]
SLOW = 5000.0
ACP_PIECE = (
    '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s1","update":{"sessionUpdate":'
    '"agent_message_chunk","content":{"type":"text","text":"' + PIECE + '"}}}}\n'
)
MOCK_PIECE = '{"type":"text","delta":"' + PIECE + '","id":TURN}\n'
MOCK_READY = '{"type":"ready","session":"bench","model":"mock-small","mode":"build"}\n'
MOCK_DONE = '{"type":"done","outcome":"completed","reason":"end_turn"}\n'


def order_in(line: str) -> tuple[int, float]:
    """How many pieces the prompt asks for, and how many a second (0: as fast as possible)."""
    _, found, rest = line.partition("emit ")
    if not found:
        return 1, 0.0
    words = rest.partition('"')[0].split()
    return int(words[0]), float(words[2]) if len(words) > 2 else 0.0


def stamped() -> str:
    """The time in microseconds and words that no compression knows beforehand."""
    words = "".join(random.choice(SYLLABLES) + random.choice(("", "", " ")) for _ in range(24))
    return f"at {time.monotonic() * 1e6:016.0f} {words:.64}"


def emit(piece: str, count: int, rate: float) -> None:
    """Write the pieces, evenly when there is a rate."""
    is_slow = 0 < rate <= SLOW
    begin = time.monotonic()
    for number in range(count):
        ahead = number / rate - (time.monotonic() - begin) if rate else 0.0
        if ahead > (0 if is_slow else 0.001):
            sys.stdout.flush()
            time.sleep(ahead)
        sys.stdout.write(piece % (number, stamped() if is_slow else WORDS))


def answer_acp(line: str) -> None:
    """Answer one ACP request."""
    request_id = line.partition('"id":')[2].partition(",")[0].strip("}\n") or "null"
    result = '{"sessionId":"s1"}'
    if '"initialize"' in line:
        result = '{"protocolVersion":1,"agentCapabilities":{}}'
    elif '"session/prompt"' in line:
        emit(ACP_PIECE, *order_in(line))
        result = '{"stopReason":"end_turn"}'
    sys.stdout.write(f'{{"jsonrpc":"2.0","id":{request_id},"result":{result}}}\n')


def answer_mock(line: str, turn: int) -> None:
    """Answer one prompt of the mock agent's protocol; the turn's number serves as the message's id."""
    if '"type":"prompt"' not in line:
        return
    count, rate = order_in(line)
    sys.stdout.write(f'{{"type":"message_start","id":{turn}}}\n')
    emit(MOCK_PIECE.replace("TURN", str(turn)), count, rate)
    text = "".join(PIECE % (number, WORDS) for number in range(count))
    sys.stdout.write(f'{{"type":"message_end","id":{turn},"parts":[{{"kind":"text","text":"{text}"}}]}}\n{MOCK_DONE}')


def main() -> None:
    """Answer lines until stdin ends."""
    speaks_acp = sys.argv[1] == "acp"
    if not speaks_acp:
        sys.stdout.write(MOCK_READY)
        sys.stdout.flush()
    for turn, line in enumerate(sys.stdin):
        if speaks_acp:
            answer_acp(line)
        else:
            answer_mock(line, turn)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
