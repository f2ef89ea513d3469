// One thread through the SDK that every runtime can play: it uses nothing but what all of them have.

const WORK = "mock: think Let me see.\nmock: permission look\nmock: question Tea or coffee? | tea | coffee\nmock: write a.md hello\nmock: say Done.";

/** A fetch whose streams break after some bytes, again and again. */
export function breaking(most) {
  let left = most;
  return async (url, init) => {
    const answer = await fetch(url, init);
    if (!answer.headers.get("content-type")?.startsWith("text/event-stream")) return answer;
    const reader = answer.body.getReader();
    let budget = (left = (left * 7) % 4001);
    const body = new ReadableStream({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        if (value.length <= budget) {
          budget -= value.length;
          return controller.enqueue(value);
        }
        controller.enqueue(value.slice(0, budget));
        budget = 0;
        await reader.cancel();
        controller.error(new TypeError("cut"));
      },
    });
    return new Response(body, { status: answer.status, headers: answer.headers });
  };
}

async function all(generator) {
  const found = [];
  for await (const each of generator) found.push(each);
  return found;
}

export async function thread({ createClient, OstlerError }, baseUrl) {
  const client = createClient({ baseUrl });
  const session = await client.sessions.create({ agent: "mock", title: "A thread" });
  const heard = [];
  const unsubscribe = session.onEvent((event) => heard.push(event.type), { onError: (error) => heard.push(String(error)) });
  const asked = [];
  const other = await client.sessions.open(session.id);
  const turn = await session.run([{ type: "text", text: WORK }], {
    onPermission: async (ask) => (asked.push(ask.action), await other.reply(ask.permission_id, "once"), "reject"), // too late
    onQuestion: (ask) => (asked.push(ask.prompt), [["tea"]]),
  });
  const again = await session.run("mock: say Twice");
  unsubscribe();
  const until = heard.length;
  const content = new TextDecoder().decode(await session.readFile("a.md"));
  const third = await session.run("mock: say Thrice");
  await session.cancel();
  const chosen = await all(session.events({ types: ["turn.ended"] }));

  const missing = await client.sessions.open("nobody").catch((error) => error);
  const cut = await createClient({ baseUrl, fetch: breaking(1931) }).sessions.open(session.id);
  const log = await all(cut);
  const acp = await all(cut.acpEvents());
  const nothing = await all(cut.acpEvents({ offset: log.at(-1).sequence }));
  const page = await client.getEvents(session.id, { includeRaw: true, limit: 500 });
  return {
    text: turn.text,
    outcome: turn.outcome,
    files: turn.files,
    asked,
    again: again.text,
    third: third.text,
    types: [...new Set(turn.events.map((event) => event.type))],
    heard: until > 10,
    silent: heard.length === until,
    content,
    missing: missing instanceof OstlerError && [missing.status, missing.code],
    sequences: log.map((event) => event.sequence),
    last: (await session.refresh()).lastSequence,
    acp: acp.map(({ sender, payload }) => [sender, payload.params?.update?.sessionUpdate]),
    acpSequences: acp.map(({ sequence }) => sequence),
    acpLast: JSON.stringify(acp.at(-1).payload).includes("Thrice") && nothing.length,
    chosen: chosen.map((event) => event.type),
    raw: page.filter((event) => event.raw !== undefined).length,
    agents: (await client.agents.list()).items.map((agent) => agent.id),
  };
}
