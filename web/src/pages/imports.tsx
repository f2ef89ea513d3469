// Conversations that agents' own programs have on the server's machine, to go on with in a session.
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import type { Conversation } from "../api/types";
import { useNow } from "../parts/now";
import { ago, moment } from "../parts/text";

export default function ImportsPage() {
  const [found, setFound] = useState<readonly Conversation[]>();
  const [problem, setProblem] = useState<string>();
  const [bringing, setBringing] = useState<string>();
  const [, go] = useLocation();
  const now = useNow(60_000);
  useEffect(() => {
    api.imports().then(
      ({ items }) => setFound(items),
      (error: unknown) => setProblem(messageOf(error)),
    );
  }, []);
  const bring = async ({ agent, conversationId }: Conversation) => {
    setBringing(conversationId);
    setProblem(undefined);
    try {
      go(`/sessions/${(await api.bring({ agent, conversationId })).id}`);
    } catch (error) {
      setProblem(messageOf(error));
      setBringing(undefined);
    }
  };
  return (
    <div className="h-full overflow-auto">
      <header className="border-b border-line px-3 py-2 sm:px-4">
        <h1 className="text-sm font-semibold">Earlier conversations</h1>
        <p className="text-dim">
          What agents&rsquo; own programs were asked on the server&rsquo;s machine. A session goes on with one of them
          in the same folder, and the agent remembers it.
        </p>
      </header>
      {problem && (
        <p role="alert" className="m-3 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {problem}
        </p>
      )}
      {!found && !problem && <p className="p-6 text-dim">Looking for them.</p>}
      {found?.length === 0 && <p className="p-6 text-dim">There are none.</p>}
      <ul>
        {found?.map((each) => (
          <li
            key={`${each.agent} ${each.conversationId}`}
            className="flex items-center gap-3 border-b border-line/60 px-3 py-2 sm:px-4"
          >
            <span className="min-w-0 flex-1">
              <span className="line-clamp-2 break-words">{each.title}</span>
              <span className="flex gap-x-3 text-2xs text-dim">
                <span className="shrink-0">{each.agent}</span>
                <span className="truncate">{each.folder}</span>
              </span>
            </span>
            <time className="text-2xs text-dim tabular-nums" dateTime={each.updatedAt} title={moment(each.updatedAt)}>
              {ago(each.updatedAt, now)}
            </time>
            {each.sessionId ? (
              <Link className="btn shrink-0" href={`/sessions/${each.sessionId}`}>
                Open
              </Link>
            ) : (
              <button
                data-needs="admin"
                type="button"
                className="btn shrink-0"
                disabled={bringing !== undefined}
                onClick={() => void bring(each)}
              >
                {bringing === each.conversationId ? "Bringing" : "Go on"}
              </button>
            )}
          </li>
        ))}
      </ul>
    </div>
  );
}
