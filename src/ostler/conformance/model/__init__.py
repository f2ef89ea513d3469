"""A scripted stand-in for a model provider, for testing real coding agents offline.

The server speaks four wire dialects, streaming and non-streaming:

    POST /v1/messages                          Anthropic Messages
    POST /v1/responses                         OpenAI Responses
    POST /v1/chat/completions                  OpenAI Chat Completions
    POST /v1beta/models/{m}:generateContent    Gemini (and :streamGenerateContent)

It holds no conversation state: every reply is computed from the request alone.
The *user* message carries the script, one `SCRIPT:` line per model turn, several
actions on a line separated by ` ;; `:

    SCRIPT: think I should look first ;; say Running it. ;; bash echo hi
    SCRIPT: write /tmp/a.txt hello\\n
    SCRIPT: say All done.

The first model call after that message plays line 1, the call that carries the
tool result plays line 2, and so on.  When the lines run out after a tool call the
server answers with a final text that quotes the last tool result, so a test can
see that the result (or the denial) really reached the model.

Actions
    say TEXT                    stream text
    think TEXT                  stream reasoning
    slow N SECONDS              stream N ticks of text, SECONDS apart (for interrupts)
    wait SECONDS                stay silent before streaming on
    bash COMMAND                call the agent's shell tool
    read PATH                   call its file-read tool
    write PATH CONTENT          call its file-write tool (or apply_patch)
    edit PATH OLD => NEW        call its file-edit tool (or apply_patch)
    ask QUESTION | A | B        call its ask-the-user tool
    plan TEXT                   call its leave-plan-mode tool
    todo A | B                  call its todo/plan-list tool
    delegate ACTION             start a sub-agent that does ACTION
    tool NAME JSON              call a tool by name with literal arguments
    recall                      say how many user turns / images the request held
    watchword                   say the watchword that the instructions told
    tools                       say which tools the request offered
    error STATUS [TIMES] [after=SECONDS]
                                fail with an HTTP status (always, or the first TIMES times); `after` tells when to
                                try again
    overflow [TIMES]            refuse a request that is too long
    fail-in-stream [TIMES]      tell an error in the middle of the stream
    quiet [TIMES]               end the stream without its last events, as if all was well
    badjson                     cut the arguments of the call before it
    limit SECONDS               fail by a limit of a subscription that ends then
    malformed [TIMES]           send a broken event stream
    cut [TIMES]                 close the connection in mid-stream
    refuse                      end as a model does that refuses
    length                      end as a model does whose output has a limit

`\\n` in an argument is a newline.  A user message without a script is echoed.
Requests that look like housekeeping (a title, a summary, a topic check) get a
fixed short answer, so they never consume a script line.

Tool calls are bound to whatever tools the request offers: the action names a
*kind* of tool, the first offered tool of that kind is called, and its arguments
are filled in from its JSON schema.

Run it:      python -m ostler.conformance.model.server --port 8899 --log requests.jsonl
Embed it:    with ScriptedModel() as model: ... model.url ... model.requests

Only the standard library is used.
"""

from ostler.conformance.model.server import ScriptedModel

__all__ = ["ScriptedModel"]
