// The face of an agent: its letters on a colour of its own, the same everywhere.

/** Hues that are told apart at a glance; other agents get one from their name. */
const HUES: Record<string, number> = {
  "claude-code": 40,
  codex: 165,
  opencode: 265,
  copilot: 300,
  pi: 350,
  amp: 15,
  gemini: 245,
  qwen: 285,
  kimi: 220,
  vibe: 60,
  openhands: 95,
  ostler: 145,
  mock: 120,
};

function hueOf(agent: string): number {
  return HUES[agent] ?? [...agent].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 7);
}

function lettersOf(agent: string): string {
  const words = agent.split(/[^a-z0-9]+/i).filter(Boolean);
  const letters = words.length > 1 ? words[0]![0]! + words[1]![0]! : agent.slice(0, 2);
  return letters[0]!.toUpperCase() + (letters[1] ?? "").toLowerCase();
}

export function AgentMark({ agent }: { agent: string }) {
  return (
    <span className="agent-mark" style={{ "--hue": hueOf(agent) } as React.CSSProperties} aria-hidden>
      {lettersOf(agent)}
    </span>
  );
}
