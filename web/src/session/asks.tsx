// What waits for a person, as cards with answers; used above the composer and in the inbox.
import { MessageCircleQuestionMark, ShieldQuestionMark } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, ApiError } from "../api/client";
import type { PermissionData, Question, QuestionData } from "../api/types";
import { Code } from "../parts/code";
import { Diff } from "../parts/diff";
import { say } from "../parts/toasts";
import { isForeign } from "../state/keys";
import { shortened } from "../state/paths";
import { may } from "../state/me";
import { overview, refreshAsks } from "../state/sessions";
import { useSelected } from "../state/store";
import { useNumbered } from "./numbered";

export interface AskProps {
  sessionId: string;
  askId: string;
  permission?: PermissionData | null;
  question?: QuestionData | null;
  /** Whether the keys a, A, r and digits answer this one. */
  keys: boolean;
}

export function AskCard(props: AskProps) {
  if (props.permission) return <PermissionCard {...props} permission={props.permission} />;
  if (props.question) return <QuestionCard {...props} question={props.question} />;
  return null;
}

/** Sends an answer once; the second of two people hears how it was decided. */
function useAnswer(): [boolean, (answer: () => Promise<unknown>) => void] {
  const [busy, setBusy] = useState(false);
  const send = (answer: () => Promise<unknown>) => {
    if (busy) return;
    setBusy(true);
    answer()
      .catch((error: unknown) =>
        say(error instanceof Error ? error.message : String(error), isLate(error) ? "info" : "error"),
      )
      .finally(() => {
        setBusy(false);
        void refreshAsks();
      });
  };
  return [busy, send];
}

function isLate(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409;
}

function useKeys(active: boolean, onKey: (event: KeyboardEvent) => void): void {
  const latest = useRef(onKey);
  latest.current = onKey;
  useEffect(() => {
    if (!active || !may("operator")) return;
    const listen = (event: KeyboardEvent) => {
      if (!isForeign(event) && !document.querySelector("dialog[open]")) latest.current(event);
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [active]);
}

function PermissionCard({ sessionId, askId, permission, keys }: AskProps & { permission: PermissionData }) {
  const [busy, send] = useAnswer();
  const [reason, setReason] = useState<string>();
  const cwd = useSelected(overview, (known) => known.sessions.get(sessionId)?.cwd);
  const reply = (choice: "once" | "always" | "reject", message?: string) =>
    send(() => api.permit(sessionId, askId, choice, message));
  useKeys(keys, (event) => {
    if (event.key === "a") reply("once");
    else if (event.key === "A") reply("always");
    else if (event.key === "r") setReason("");
    else return;
    event.preventDefault();
  });
  return (
    <section
      className="card border-warn/60 p-3"
      aria-label={`Permission: ${shortened(permission.action, cwd)}`}
      data-ask={askId}
    >
      <p className="flex items-start gap-2">
        <ShieldQuestionMark size={16} className="mt-0.5 shrink-0 text-warn" aria-hidden />
        <span className="min-w-0 font-medium break-words">
          {shortened(permission.action, cwd)}
          {namesTool(permission) || <span className="ml-2 font-normal text-dim">{permission.tool}</span>}
        </span>
      </p>
      <Details metadata={permission.metadata} action={permission.action} sessionId={sessionId} cwd={cwd} />
      {reason === undefined ? (
        <div className="mt-2 flex flex-wrap gap-2 max-sm:[&>button]:flex-1">
          <button
            data-needs="operator"
            type="button"
            disabled={busy}
            className="btn btn-main"
            onClick={() => reply("once")}
          >
            Allow once <Key active={keys} name="a" />
          </button>
          <button data-needs="operator" type="button" disabled={busy} className="btn" onClick={() => reply("always")}>
            Always in this session <Key active={keys} name="A" />
          </button>
          <button data-needs="operator" type="button" disabled={busy} className="btn" onClick={() => setReason("")}>
            Reject <Key active={keys} name="r" />
          </button>
        </div>
      ) : (
        <form
          className="mt-2 flex flex-wrap gap-2"
          onSubmit={(event) => (event.preventDefault(), reply("reject", reason.trim() || undefined))}
        >
          <input
            autoFocus
            className="field min-w-40 flex-1"
            aria-label="Reason for the agent"
            placeholder="Reason for the agent, if you like"
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            onKeyDown={(event) => event.key === "Escape" && setReason(undefined)}
          />
          <button type="submit" disabled={busy} className="btn border-bad text-bad">
            Reject
          </button>
          <button type="button" className="btn btn-bare" onClick={() => setReason(undefined)}>
            Back
          </button>
        </form>
      )}
    </section>
  );
}

/** Many agents begin what they want to do with the tool's name. */
function namesTool({ action, tool }: PermissionData): boolean {
  return !tool || action.toLowerCase().startsWith(tool.toLowerCase());
}

function Key({ active, name }: { active: boolean; name: string }) {
  return active ? (
    <kbd className="kbd hidden sm:inline" aria-hidden>
      {name}
    </kbd>
  ) : null;
}

interface DetailsProps {
  metadata?: Record<string, unknown> | null;
  action: string;
  sessionId: string;
  cwd?: string | null;
}

/** What the action does not say yet. */
function Details({ metadata, action, sessionId, cwd }: DetailsProps) {
  if (!metadata || !Object.keys(metadata).length) return null;
  const { command, diff, ...rest } = metadata;
  return (
    <div className="mt-2 max-h-60 space-y-2 overflow-auto" tabIndex={0} role="group" aria-label="Details">
      {typeof command === "string" && !action.includes(command) && <Code text={command} language="bash" />}
      {typeof diff === "string" && <Proposed diff={diff} sessionId={sessionId} cwd={cwd} />}
      {Object.keys(rest).length > 0 && (
        <details>
          <summary className="text-2xs text-dim">Details</summary>
          <Code text={JSON.stringify(rest, null, 2)} language="json" />
        </details>
      )}
    </div>
  );
}

function Proposed({ diff, sessionId, cwd }: { diff: string; sessionId: string; cwd?: string | null }) {
  return <Diff text={useNumbered(sessionId, cwd, diff, "old")} label="Proposed changes" />;
}

function questionsOf(data: QuestionData): readonly Question[] {
  if (data.questions?.length) return data.questions;
  return [
    {
      question: data.prompt,
      options: data.options.map((label) => ({ label })),
      multi_select: false,
      free_text: !data.options.length,
    },
  ];
}

/** The answer that lets a plan be carried out. */
const APPROVE = "Approve";

function QuestionCard({ sessionId, askId, question, keys }: AskProps & { question: QuestionData }) {
  const questions = questionsOf(question);
  const [busy, send] = useAnswer();
  const [chosen, setChosen] = useState<string[][]>(() => questions.map(() => []));
  const [own, setOwn] = useState<string[]>(() => questions.map(() => ""));
  const answers = chosen.map((labels, index) => (own[index]?.trim() ? [...labels, own[index].trim()] : labels));
  const isComplete = answers.every((labels) => labels.length > 0);
  const choose = (at: number, label: string) => {
    const isMulti = questions[at]!.multi_select;
    const known = chosen[at] ?? [];
    const next = isMulti
      ? known.includes(label)
        ? known.filter((other) => other !== label)
        : [...known, label]
      : [label];
    setChosen(chosen.map((labels, index) => (index === at ? next : labels)));
    if (!isMulti) setOwn(own.map((text, index) => (index === at ? "" : text)));
  };
  const submit = () => isComplete && send(() => api.answer(sessionId, askId, answers));
  const isPlan = question.metadata?.kind === "plan" && questions.length === 1 && questions[0]!.free_text;
  const wish = own[0]?.trim();
  const approve = () =>
    send(async () => {
      await api.answer(sessionId, askId, [[APPROVE]]);
      await api.send(sessionId, { message: `The plan is approved with these changes:\n\n${wish}`, whenBusy: "steer" });
    });
  const current = Math.max(
    0,
    answers.findIndex((labels) => !labels.length),
  );
  useKeys(keys, (event) => {
    const option = questions[current]?.options[Number(event.key) - 1];
    if (option) choose(current, option.label);
    else if (event.key === "Enter" && isComplete && !(event.target as HTMLElement).closest("button, a")) submit();
    else return;
    event.preventDefault();
  });
  return (
    <form
      className="card border-warn/60 p-3"
      aria-label={`Question: ${question.prompt}`}
      data-ask={askId}
      onSubmit={(event) => (event.preventDefault(), submit())}
    >
      {questions.map((one, at) => (
        <OneQuestion
          key={at}
          name={`${askId}-${at}`}
          question={one}
          chosen={chosen[at] ?? []}
          own={own[at] ?? ""}
          keys={keys && at === current}
          onChoose={(label) => choose(at, label)}
          onOwn={(text) => {
            setOwn(own.map((known, index) => (index === at ? text : known)));
            if (!one.multi_select && text) setChosen(chosen.map((known, index) => (index === at ? [] : known)));
          }}
        />
      ))}
      <div className="mt-2 flex flex-wrap gap-2">
        <button data-needs="operator" type="submit" disabled={busy || !isComplete} className="btn btn-main">
          Answer
        </button>
        {isPlan && (
          <button data-needs="operator" type="button" disabled={busy || !wish} className="btn" onClick={approve}>
            Approve with these changes
          </button>
        )}
        <button
          data-needs="operator"
          type="button"
          disabled={busy}
          className="btn"
          onClick={() => send(() => api.decline(sessionId, askId))}
        >
          Decline
        </button>
      </div>
    </form>
  );
}

interface OneProps {
  name: string;
  question: Question;
  chosen: string[];
  own: string;
  keys: boolean;
  onChoose(label: string): void;
  onOwn(text: string): void;
}

function OneQuestion({ name, question, chosen, own, keys, onChoose, onOwn }: OneProps) {
  return (
    <fieldset className="mt-2 first:mt-0">
      <legend className="mb-1 flex items-start gap-2 font-medium">
        <MessageCircleQuestionMark size={16} className="mt-0.5 shrink-0 text-warn" aria-hidden />
        <span>
          {question.header && <span className="chip mr-2">{question.header}</span>}
          {question.question}
        </span>
      </legend>
      <div className="flex flex-wrap gap-2">
        {question.options.map((option, index) => (
          <label
            key={option.label}
            className={`btn max-sm:w-full max-sm:justify-start ${option.description ? "items-start" : ""} ${chosen.includes(option.label) ? "border-accent bg-accent-soft" : ""}`}
          >
            <input
              type={question.multi_select ? "checkbox" : "radio"}
              name={name}
              className={option.description ? "mt-1" : ""}
              checked={chosen.includes(option.label)}
              onChange={() => onChoose(option.label)}
            />
            <span className="text-left whitespace-normal">
              {option.label}
              {option.description && <span className="block text-2xs text-dim">{option.description}</span>}
            </span>
            {index < 9 && <Key active={keys} name={String(index + 1)} />}
          </label>
        ))}
      </div>
      {question.free_text && (
        <input
          className="field mt-2"
          aria-label="Your own answer"
          placeholder="Your own answer"
          value={own}
          onChange={(event) => onOwn(event.target.value)}
        />
      )}
    </fieldset>
  );
}
