// Calls of a tool of the client: a function gives a result, one throws, and one is missing.
const [place, baseUrl] = process.argv.slice(2);
const { createClient, UnansweredToolError } = await import(place);
const weather = { name: "weather", description: "The weather in a town.", inputSchema: { type: "object" } };
const client = createClient({ baseUrl });
const prompt = 'SCRIPT: tool weather {"town": "Ulm"}';

async function run(tools) {
  const session = await client.sessions.create({
    agent: "ostler",
    model: "openrouter/scripted-large",
    clientTools: [weather],
  });
  const turn = await session.run(prompt, { tools }).catch((error) => error);
  return turn instanceof UnansweredToolError ? turn.tool : turn.text;
}

const given = await run({ weather: async ({ town }) => ({ town, degrees: 4 }) });
const failed = await run({
  weather: () => {
    throw new RangeError("no such town");
  },
});
console.log(JSON.stringify({ given, failed, missing: await run({}) }));
