// Handing the result over: its button, and what became of the pull request.
import { Send } from "lucide-react";
import { lazy, Suspense, useEffect, useState } from "react";
import { api } from "../api/client";
import type { Session } from "../api/types";
import { toneOf, whyUnseen, wordsOf } from "../parts/pull_request";
import { useHead, useLive, usePlaced, useWish } from "./context";
import { saveAs } from "./actions";

const DeliverDialog = lazy(() => import("./deliver_dialog"));

/** What the button says: there is nothing yet, there is something new, or all of it is there. */
export function verbOf(delivery: Session["delivery"]): string {
  if (!delivery || delivery.mode === "patch") return "Deliver";
  if (delivery.mode === "commit") return "Commit";
  return delivery.mode === "local" ? "Update" : "Push";
}

export function DeliverButton() {
  const live = useLive();
  const session = usePlaced();
  const isWorking = useHead((head) => Boolean(head.summary.turn));
  const hasFiles = useHead((head) => Boolean(head.summary.workspaceId ?? head.session?.workspaceId));
  const [open, setOpen] = useState(false);
  useWish("deliver", () => setOpen(true));
  if (!hasFiles) return null;
  const isNew = Boolean(session?.delivery?.outdated);
  return (
    <>
      <button
        data-needs="operator"
        type="button"
        className={`btn ${isNew && !isWorking ? "btn-main" : ""}`}
        title={isNew ? "There is something that was not delivered yet" : "Hand the result over"}
        onClick={() => setOpen(true)}
      >
        <Send size={13} aria-hidden /> {verbOf(session?.delivery)}
      </button>
      {open && (
        <Suspense fallback={null}>
          <DeliverDialog session={live.id} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  );
}

/** The pull request of a session, asked for again whenever somebody comes to look. */
export function PullRequestLink() {
  const live = useLive();
  const request = usePlaced()?.delivery?.pullRequest;
  const number = request?.state === "merged" ? undefined : request?.number;
  useEffect(() => {
    if (number === undefined) return;
    const look = () => void api.delivery(live.id).catch(() => undefined);
    look();
    addEventListener("focus", look);
    return () => removeEventListener("focus", look);
  }, [live.id, number]);
  if (!request) return null;
  if (!/^https?:/.test(request.url)) return <span>{wordsOf(request)}</span>;
  return (
    <a
      href={request.url}
      target="_blank"
      rel="noreferrer"
      className={`thumb underline-offset-2 hover:underline ${toneOf(request)}`}
      title={whyUnseen(request)}
    >
      {wordsOf(request)}
    </a>
  );
}

export async function download(session: string): Promise<void> {
  saveAs(await api.patch(session), `${session}.patch`);
}
