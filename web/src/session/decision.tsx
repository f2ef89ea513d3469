// What became of an ask, in a word.
import type { AskRow } from "../state/rows";

const DECISIONS: Record<string, string> = {
  requested: "waiting for you",
  accept: "allowed once",
  accept_for_session: "allowed for this session",
  reject: "rejected",
  answered: "answered",
  rejected: "declined",
};

export function Decision({ ask }: { ask: AskRow }) {
  const status = ask.permission?.status ?? ask.question?.status ?? "requested";
  const bad = status === "reject" || status === "rejected";
  const answers = ask.question?.answers?.map((chosen) => chosen.join(", ")).join("; ");
  return (
    <span
      className={`max-w-[50%] shrink-0 truncate text-xs ${bad ? "text-bad" : status === "requested" ? "text-warn" : "text-ok"}`}
    >
      {DECISIONS[status] ?? status}
      {answers && `: ${answers}`}
      {ask.permission?.message && <span className="ml-2 text-dim italic">“{ask.permission.message}”</span>}
    </span>
  );
}
