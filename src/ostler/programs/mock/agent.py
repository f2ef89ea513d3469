"""The mock agent: a real coding agent's manners without a model, for demos, tests and benchmarks.

Run it as `python -I -S agent.py [flags]`. It needs only the standard library and the modules beside it.

Flags: --model, --variant, --mode build|plan, --permission-mode default|plan|bypass, --resume SESSION,
--instructions FILE.

It reads one JSON object per line from stdin:

    {"type": "prompt", "text": "...", "images": [path], "files": [path]}   begin a turn
    {"type": "steer", "text": "..."}                                       add to the running turn
    {"type": "interrupt"}                                                  end the running turn
    {"type": "reply", "id": 3, "allow": true, "message": null}             decide a permission
    {"type": "answer", "id": 4, "answers": [["tea"]], "message": null}     answer a question (null: declined)

and writes one JSON object per line to stdout; ids count up within one process:

    {"type": "ready", "session", "model", "variant", "mode"}               takes prompts from now on
    {"type": "message_start", "id"}                                        an assistant message opens
    {"type": "thinking", "id", "delta"} / {"type": "text", "id", "delta"}  it grows
    {"type": "message_end", "id", "parts": [{"kind": "text", "text"}]}     it is final; a kind is text or thinking
    {"type": "message", "id", "parts"}                                     a whole message in one frame
    {"type": "tool_start", "id", "name", "input"}                          a tool is called
    {"type": "tool_input", "id", "delta"}                                  its input grows, if it began without one
    {"type": "tool_output", "id", "stream", "data"}                        terminal output; id null: of no tool
    {"type": "tool_end", "id", "ok", "output"}                             the tool answered
    {"type": "file", "path", "action", "operation", "diff", "tool"}        a file was written or edited
    {"type": "permission", "id", "action", "tool"}                         waits for a reply
    {"type": "question", "id", "questions"}                                waits for an answer
    {"type": "plan", "entries": [{"content", "status"}]}                   the whole plan
    {"type": "usage", "input", "output", "cost", "context_used", "context_window"}
    {"type": "title", "title"}
    {"type": "unheard", "texts"}                                           steering that an interrupt took back
    {"type": "error", "message", "resets_at"}                              resets_at: a limit that ends then, or null
    {"type": "done", "outcome": "completed|interrupted|failed", "reason"}  the turn is over

The end of stdin ends it, and so do SIGINT and SIGTERM. What a prompt can make it do: see loop.DIRECTIVES.
"""

import os
import signal
import sys

if __name__ == "__main__":  # -I hides the folder the package lies in
    sys.path.append(os.path.abspath(__file__).rsplit("/ostler/", 1)[0])  # noqa: PTH100 - pathlib costs start-up time

from ostler.programs.mock.channel import Channel
from ostler.programs.mock.memory import Memory
from ostler.programs.mock.turn import Agent, Options


def main(arguments: list[str]) -> None:
    """Say ready at once, then work until stdin ends."""
    for polite in (signal.SIGINT, signal.SIGTERM):
        signal.signal(polite, signal.SIG_DFL)
    try:
        options = Options.parse(arguments)
        memory = Memory.open(os.environ.get("HOME"), options.resume)
    except (OSError, ValueError) as problem:
        sys.exit(f"mock: {problem}")
    agent = Agent(Channel(), options, memory)
    agent.ready()
    from ostler.programs.mock.loop import serve  # noqa: PLC0415 - the first frame must not wait for the tools' imports

    serve(agent)


if __name__ == "__main__":
    main(sys.argv[1:])
