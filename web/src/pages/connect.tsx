// Which server, and who asks: signed in at a provider, or with a token. Shown when the server wants that, or is away.
import { useEffect, useState, type FormEvent } from "react";
import { api, ApiError, messageOf } from "../api/client";
import { connection, connectTo } from "../api/connection";
import type { WayToSignIn } from "../api/types";
import { CopyButton } from "../parts/code";

export default function ConnectPage({ reason, onDone }: { reason?: string; onDone(): void }) {
  const known = connection.get();
  const [endpoint, setEndpoint] = useState(known.endpoint || location.origin);
  const [token, setToken] = useState(known.token);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(reason && firstSentence(reason));
  const [elsewhere, setElsewhere] = useState<string>();
  const blocked = useBlocked();
  const ways = useWays();

  const connect = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    const to = { endpoint: endpoint.trim().replace(/\/+$/, ""), token: token.trim() };
    try {
      await api.version(to.endpoint === location.origin ? { ...to, endpoint: "" } : to);
      connectTo(to);
      onDone();
    } catch (failure) {
      await new Promise((resolve) => setTimeout(resolve, 50)); // the browser tells of a forbidden call a moment later
      setElsewhere(blocked.current && /^https?:/.test(to.endpoint) ? to.endpoint : undefined);
      setError(
        blocked.current
          ? "This page may only talk to the server it came from. The other one has a page of its own."
          : explain(failure),
      );
      setBusy(false);
    }
  };
  const isElsewhere = endpoint.trim().replace(/\/+$/, "") !== location.origin;
  if (!ways) return <main aria-busy="true" />;
  const isFirst = ways.length > 0 && !known.token && error === (reason && firstSentence(reason));
  const form = (
    <form className="space-y-4" onSubmit={(event) => void connect(event)}>
      {elsewhere && (
        <a className="btn w-full justify-center" href={elsewhere}>
          Open {elsewhere}
        </a>
      )}
      <label className="block">
        <span className="label">Server</span>
        <input
          className="field font-mono text-xs"
          type="url"
          required
          value={endpoint}
          onChange={(event) => setEndpoint(event.target.value)}
        />
      </label>
      <label className="block">
        <span className="label">Token</span>
        <input
          className="field font-mono text-xs"
          type="password"
          autoComplete="off"
          placeholder="If the server needs one"
          value={token}
          onChange={(event) => setToken(event.target.value)}
        />
        <span className="mt-1 block text-2xs text-dim">Kept in this browser only.</span>
      </label>
      <button type="submit" className="btn btn-main w-full py-1.5" disabled={busy}>
        {busy ? "Connecting" : "Connect"}
      </button>
      <details open={isElsewhere || undefined}>
        <summary className="text-dim">How to start a server</summary>
        <div className="mt-2 space-y-2 text-2xs text-dim">
          <Command text="ostler serve" />
          <p>With a token, so that others need it:</p>
          <Command text={'ostler serve --token "$(cat token.txt)"'} />
          <p>If this page is not served by that server, allow its origin:</p>
          <Command text={`ostler serve --cors-origin ${location.origin}`} />
        </div>
      </details>
    </form>
  );
  return (
    <main className="flex min-h-full items-center justify-center p-4">
      <div className="card w-full max-w-md space-y-4 p-5">
        <div>
          <h1 className="text-base font-semibold">{ways.length ? "Sign in to Ostler" : "Connect to Ostler"}</h1>
          <p className="text-dim">One server for every coding agent.</p>
        </div>
        {error && !isFirst && (
          <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
            {error}
          </p>
        )}
        {ways.map((way) => (
          <a key={way.path} className="btn btn-main w-full justify-center py-1.5" href={startOf(way)} onClick={forget}>
            Sign in with {way.name}
          </a>
        ))}
        {ways.length ? (
          <details open={Boolean(known.token) || undefined}>
            <summary className="text-dim">Use a token</summary>
            <div className="mt-3">{form}</div>
          </details>
        ) : (
          form
        )}
      </div>
    </main>
  );
}

/** Where people sign in to the server of this page; undefined until it has told. */
function useWays(): WayToSignIn[] | undefined {
  const isOwn = connection.get().endpoint === "";
  const [ways, setWays] = useState<WayToSignIn[] | undefined>(isOwn ? undefined : []);
  useEffect(() => {
    if (!isOwn) return;
    api.providers().then(
      (found) => setWays(found.browser ?? []),
      () => setWays([]),
    );
  }, [isOwn]);
  return ways;
}

function startOf(way: WayToSignIn): string {
  return `${way.path}?${new URLSearchParams({ next: location.pathname + location.search })}`;
}

/** A token that this browser has would be sent instead of the cookie. */
function forget(): void {
  connectTo({ endpoint: "", token: "" });
}

function Command({ text }: { text: string }) {
  return (
    <p className="flex items-center gap-1 rounded bg-sunken px-2 py-0.5 font-mono text-xs text-ink">
      <span className="min-w-0 flex-1 truncate">{text}</span>
      <CopyButton text={text} label="Copy the command" />
    </p>
  );
}

function explain(failure: unknown): string {
  if (failure instanceof ApiError && failure.status === 0)
    return `${failure.message} Is it running, and does it allow ${location.origin}?`;
  return firstSentence(messageOf(failure));
}

/** What follows is for programs: which header to send. */
function firstSentence(text: string): string {
  return text.split(/(?<=\.) /)[0] ?? text;
}

/** The page's own policy may forbid other servers; the browser says so only by an event. */
function useBlocked(): { current: boolean } {
  const [blocked] = useState({ current: false });
  useEffect(() => {
    const listen = (event: SecurityPolicyViolationEvent) => {
      if (event.effectiveDirective === "connect-src") blocked.current = true;
    };
    document.addEventListener("securitypolicyviolation", listen);
    return () => document.removeEventListener("securitypolicyviolation", listen);
  }, [blocked]);
  return blocked;
}
