// The dialog that logs an agent in: by its own login, with a key, or with what is on the machine.
import { ExternalLink, LoaderCircle } from "lucide-react";
import { useEffect, useState, type ReactNode } from "react";
import { api, messageOf } from "../api/client";
import type { AgentLogin } from "../api/types";
import { catalogue } from "../state/agents";
import { clockBetween, isUnderWay, loadLogin, logins, loginWords, noted, openedLogin } from "../state/logins";
import { useSelected, useStore } from "../state/store";
import { CopyButton } from "./code";
import { Dialog } from "./dialog";
import { useNow } from "./now";

const LOOK_MS = 1000;
const TONES = { ok: "text-ok", warn: "text-warn", dim: "text-dim" };

/** Stands once on every page; whoever wants a login opens it. */
export default function OpenedLogin() {
  const agent = useStore(openedLogin);
  return agent ? <LoginDialog key={agent} agent={agent} onClose={() => openedLogin.set(undefined)} /> : null;
}

function LoginDialog({ agent, onClose }: { agent: string; onClose(): void }) {
  const name = useSelected(catalogue, (known) => known.agents.find((one) => one.id === agent)?.name) ?? agent;
  const login = useSelected(logins, (known) => known.get(agent));
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const underWay = isUnderWay(login);
  useEffect(() => {
    const look = () => loadLogin(agent).catch((error) => setProblem(messageOf(error)));
    void look();
    const timer = underWay ? setInterval(() => void look(), LOOK_MS) : undefined;
    return () => clearInterval(timer);
  }, [agent, underWay]);
  const act = async (what: Promise<AgentLogin | void>) => {
    setBusy(true);
    setProblem(undefined);
    try {
      const now = await what;
      if (now) noted(now);
      else await loadLogin(agent);
    } catch (error) {
      setProblem(messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog label={`Log in to ${name}`} onClose={onClose}>
      <div className="space-y-3">
        {login && <State login={login} />}
        {!login && !problem && <p className="text-dim">Looking at the login.</p>}
        {login?.running && underWay && <Running agent={agent} running={login.running} busy={busy} act={act} />}
        {login && !underWay && <Offers login={login} busy={busy} act={act} />}
        {problem && (
          <p role="alert" className="break-words text-bad">
            {problem}
          </p>
        )}
      </div>
    </Dialog>
  );
}

type Act = (what: Promise<AgentLogin | void>) => Promise<void>;

function State({ login }: { login: AgentLogin }) {
  const { text, tone } = loginWords(login);
  const last = login.running;
  const ended = last && !isUnderWay(login) ? last : undefined;
  return (
    <div role="status">
      <p>
        <span className={`font-medium ${TONES[tone]}`}>{text[0]!.toUpperCase() + text.slice(1)}.</span>{" "}
        <span className="text-dim">{login.reason}</span>
      </p>
      {ended?.step === "succeeded" && <p className="text-ok">Logged in.</p>}
      {ended && ended.step !== "succeeded" && (
        <p className="break-words text-bad">
          {ended.step === "cancelled" ? "The login was cancelled." : ended.message}
        </p>
      )}
    </div>
  );
}

function Running({
  agent,
  running,
  busy,
  act,
}: {
  agent: string;
  running: NonNullable<AgentLogin["running"]>;
  busy: boolean;
  act: Act;
}) {
  const [code, setCode] = useState("");
  const now = useNow(LOOK_MS);
  const send = async () => {
    if (!code.trim()) return;
    await act(api.answerLogin(agent, code.trim()));
    setCode("");
  };
  return (
    <div className="space-y-3">
      {!running.url && (
        <p className="inline-flex items-center gap-2 text-dim">
          <LoaderCircle size={13} className="animate-spin" aria-hidden /> Starting{" "}
          {clockBetween(running.startedAt, now)}
        </p>
      )}
      {running.url && (
        <p>
          <a className="btn btn-main inline-flex" href={running.url} target="_blank" rel="noopener noreferrer">
            <ExternalLink size={13} aria-hidden /> Open the login page
          </a>
        </p>
      )}
      {running.code && (
        <p className="flex items-center gap-2">
          Enter this code there: <code className="rounded bg-sunken px-2 py-1 font-mono text-base">{running.code}</code>
          <CopyButton text={running.code} label="Copy the code" />
        </p>
      )}
      {running.wantsCode && (
        <form className="flex items-end gap-2" onSubmit={(event) => (event.preventDefault(), void send())}>
          <label className="min-w-0 flex-1">
            <span className="label">If the page shows a code, paste it here</span>
            <input
              className="field font-mono text-xs"
              autoComplete="off"
              spellCheck={false}
              value={code}
              onChange={(event) => setCode(event.target.value)}
            />
          </label>
          <button type="submit" className="btn" disabled={busy || !code.trim()}>
            Send the code
          </button>
        </form>
      )}
      <div className="flex items-center justify-between gap-2 text-2xs text-dim">
        <span>{running.url ? `Waiting ${clockBetween(running.startedAt, now)}` : ""}</span>
        <button type="button" className="btn" onClick={() => void act(api.cancelLogin(agent))}>
          Cancel
        </button>
      </div>
    </div>
  );
}

function Offers({ login, busy, act }: { login: AgentLogin; busy: boolean; act: Act }) {
  const { agent, offers = [] } = login;
  const of = (method: string) => offers.find((offer) => offer.method === method);
  const own = offers.filter((offer) => offer.method === "subscription");
  const machine = of("machine");
  const key = of("key");
  const session = of("session");
  return (
    <div className="space-y-3">
      {own.map((offer) => (
        <Way key={offer.way ?? ""} about={offer.about}>
          <button
            type="button"
            className="btn btn-main"
            disabled={busy || !offer.available}
            onClick={() => void act(api.logIn(agent, { method: "subscription", way: offer.way }))}
          >
            {offer.name ?? "Log in with an account"}
          </button>
        </Way>
      ))}
      {machine && (
        <Way about={machine.about}>
          <button
            type="button"
            className="btn"
            disabled={busy || !machine.available || login.method === "machine"}
            onClick={() => void act(api.logIn(agent, { method: "machine" }))}
          >
            Use this machine's login
          </button>
        </Way>
      )}
      {key && <Key agent={agent} variables={key.variables ?? []} about={key.about} busy={busy} act={act} />}
      {session && <p className="text-2xs text-dim">{session.about}</p>}
      {login.method && (
        <div className="flex justify-end">
          <button type="button" className="btn border-bad text-bad" onClick={() => void act(api.logOut(agent))}>
            Log out
          </button>
        </div>
      )}
    </div>
  );
}

function Way({ about, children }: { about: string; children: ReactNode }) {
  return (
    <div>
      {children}
      <p className="mt-1 text-2xs text-dim">{about}</p>
    </div>
  );
}

function Key({
  agent,
  variables,
  about,
  busy,
  act,
}: {
  agent: string;
  variables: readonly string[];
  about: string;
  busy: boolean;
  act: Act;
}) {
  const [key, setKey] = useState("");
  const [variable, setVariable] = useState(variables[0] ?? "");
  const store = async () => {
    await act(api.logIn(agent, { method: "key", key: key.trim(), variable }));
    setKey("");
  };
  return (
    <form onSubmit={(event) => (event.preventDefault(), void store())}>
      <div className="flex flex-wrap items-end gap-2">
        <label className="min-w-40 flex-1">
          <span className="label">Key</span>
          <input
            type="password"
            className="field font-mono text-xs"
            autoComplete="off"
            value={key}
            onChange={(event) => setKey(event.target.value)}
          />
        </label>
        {variables.length > 1 && (
          <label>
            <span className="label">Given as</span>
            <select className="field" value={variable} onChange={(event) => setVariable(event.target.value)}>
              {variables.map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          </label>
        )}
        <button type="submit" className="btn" disabled={busy || !key.trim()}>
          Store the key
        </button>
      </div>
      <p className="mt-1 text-2xs text-dim">{about}</p>
    </form>
  );
}
