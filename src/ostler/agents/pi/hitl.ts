// Runs inside Pi and gives it what it leaves out: permissions, questions and a plan mode. Adds the session's instructions.
// Each ask is one of Pi's own dialogs with JSON in its title; the answer is JSON as well.
import { readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";

const GATED = process.env.OSTLER_PI_GATE === "1";
const HARMLESS = new Set(["read", "grep", "find", "ls", "ask_user", "exit_plan_mode"]);
const CHANGES_FILES = new Set(["write", "edit"]);
const MOST_KEPT = 65536;
const PLANNING =
  "\n\nPlan mode is on: look around, but change nothing. When the plan is ready, call exit_plan_mode with it and wait.";

const INSTRUCTIONS = process.env.OSTLER_PI_INSTRUCTIONS
  ? `\n\n${readFileSync(process.env.OSTLER_PI_INSTRUCTIONS, "utf8")}`
  : "";

type Before = { existed: boolean; before?: string };

function stateOf(path: string): Before {
  try {
    const small = statSync(path).size <= MOST_KEPT;
    return small ? { existed: true, before: readFileSync(path, "utf8") } : { existed: true };
  } catch {
    return { existed: false, before: "" };
  }
}

async function ask(ctx: any, signal: any, title: object, options: string[]): Promise<any> {
  const answer = await ctx.ui.select(JSON.stringify(title), options, { signal });
  return answer === undefined ? undefined : JSON.parse(answer);
}

function told(text: string, details: object = {}) {
  return { content: [{ type: "text", text }], details };
}

function because(message?: string): string {
  return message ? `: ${message}` : ".";
}

export default function (pi: any) {
  const written = new Map<string, Before>();
  let planning = process.env.OSTLER_PI_PLAN === "1";

  pi.on("tool_call", async (event: any, ctx: any) => {
    const { toolCallId, toolName, input } = event;
    if (planning && CHANGES_FILES.has(toolName)) {
      return { block: true, reason: "Plan mode is on: call exit_plan_mode before you change files." };
    }
    if ((GATED || planning) && !HARMLESS.has(toolName)) {
      const request = { kind: "permission", toolCallId, toolName, input };
      const answer = await ask(ctx, ctx.signal, request, ["once", "reject"]);
      if (!answer?.allow) {
        return { block: true, reason: `The user rejected this tool call${because(answer?.message)}` };
      }
    }
    if (toolName === "write") written.set(toolCallId, stateOf(resolve(ctx.cwd, input.path)));
    return undefined;
  });

  pi.on("tool_result", async (event: any) => {
    const before = written.get(event.toolCallId);
    if (before === undefined) return undefined;
    written.delete(event.toolCallId);
    return { details: { ...event.details, ...before } };
  });

  pi.registerTool({
    name: "ask_user",
    label: "Ask user",
    description: "Ask the user a question and wait for the answer. Offer options; the user may also answer freely.",
    parameters: {
      type: "object",
      properties: {
        question: { type: "string" },
        options: { type: "array", items: { type: "string" } },
        multi: { type: "boolean", description: "Whether several options may be chosen." },
      },
      required: ["question", "options"],
    },
    async execute(toolCallId: string, params: any, signal: any, _update: any, ctx: any) {
      const { question, options, multi } = params;
      const answer = await ask(ctx, signal, { kind: "question", toolCallId, question, multi: multi === true }, options);
      if (!answer?.answers) return told(`The user declined to answer${because(answer?.message)}`);
      return told(`The user answered: ${answer.answers.join(", ")}`, { answers: answer.answers });
    },
  });

  // the flag for it would take the place of what a repository adds to the system prompt
  pi.on("before_agent_start", async (event: any) => {
    const added = INSTRUCTIONS + (planning ? PLANNING : "");
    return added ? { systemPrompt: event.systemPrompt + added } : undefined;
  });

  if (!planning) return;

  pi.registerTool({
    name: "exit_plan_mode",
    label: "Present plan",
    description: "Present the plan to the user and ask whether to carry it out. Only for plan mode.",
    parameters: { type: "object", properties: { plan: { type: "string" } }, required: ["plan"] },
    async execute(toolCallId: string, params: any, signal: any, _update: any, ctx: any) {
      const request = { kind: "plan", toolCallId, plan: params.plan };
      const answer = await ask(ctx, signal, request, ["Approve", "Reject"]);
      planning = !answer?.allow;
      if (planning) return told(`The user rejected the plan${because(answer?.message)}\nPlan mode is on.`);
      return told("The user approved the plan. Plan mode is off: carry it out.");
    },
  });
}
