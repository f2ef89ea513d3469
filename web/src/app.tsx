// Pages by address, keys that work everywhere, and what the tab says.
import { lazy, Suspense, useEffect, useState } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { connection } from "./api/connection";
import { Boundary } from "./parts/boundary";
import { Palette } from "./parts/palette";
import { Toasts } from "./parts/toasts";
import { Shell, switcherOf } from "./shell";
import { isForeign } from "./state/keys";
import { openedLogin } from "./state/logins";
import { loadMe, may } from "./state/me";
import { openedPrompts } from "./state/prompts";
import { recent } from "./state/recent";
import { overview, startOverview, stopOverview } from "./state/sessions";
import { useSelected, useStore } from "./state/store";
import { nextUnread, useAttention } from "./state/attention";
import { collected, collectTyped } from "./state/typed";

/** It is on its way while the rest begins, if it is the page that was asked for. */
const sessions = location.pathname === "/" ? import("./pages/sessions") : undefined;
const SessionsPage = lazy(() => sessions ?? import("./pages/sessions"));
const ConnectPage = lazy(() => import("./pages/connect"));
const Help = lazy(() => import("./parts/help"));
const SessionPage = lazy(() => import("./pages/session"));
const ReviewPage = lazy(() => import("./pages/review"));
const NewPage = lazy(() => import("./pages/new"));
const InboxPage = lazy(() => import("./pages/inbox"));
const AgentsPage = lazy(() => import("./pages/agents"));
const ImportsPage = lazy(() => import("./pages/imports"));
const RunnersPage = lazy(() => import("./pages/runners"));
const SettingsPage = lazy(() => import("./pages/settings"));
const TemplatesPage = lazy(() => import("./pages/templates"));
const TemplateEditPage = lazy(() => import("./pages/template_edit"));
const TriggersPage = lazy(() => import("./pages/triggers"));
const SchedulesPage = lazy(() => import("./pages/schedules"));
const WebhooksPage = lazy(() => import("./pages/webhooks"));
const TriggerNewPage = lazy(() => import("./pages/trigger_new"));
const ScheduleNewPage = lazy(() => import("./pages/schedule_new"));
const WebhookNewPage = lazy(() => import("./pages/webhook_new"));
const PromptDialogs = lazy(() => import("./parts/prompts"));
const Pairing = lazy(() => import("./parts/pairing"));
const OpenedLogin = lazy(() => import("./parts/login"));

export function App() {
  const link = useSelected(overview, (known) => known.link);
  const error = useSelected(overview, (known) => known.error);
  const isEmpty = useSelected(overview, (known) => known.sessions.size === 0 && known.loading);
  const [choosing, setChoosing] = useState(false);
  useEffect(() => {
    startOverview();
    return stopOverview;
  }, []);
  useAttention();
  const where = useStore(connection);
  const isOpen = link === "open";
  useEffect(() => void (isOpen && loadMe()), [where, isOpen]);
  const needsConnect = choosing || link === "refused" || (link === "lost" && isEmpty);
  if (needsConnect) {
    return (
      <Suspense fallback={null}>
        <ConnectPage
          key={link}
          reason={error}
          onDone={() => {
            setChoosing(false);
            startOverview();
          }}
        />
      </Suspense>
    );
  }
  return <Frame onConnect={() => setChoosing(true)} />;
}

function Frame({ onConnect }: { onConnect(): void }) {
  const logsIn = useSelected(openedLogin, Boolean);
  const hasPrompts = useSelected(openedPrompts, Boolean);
  const [overlay, setOverlay] = useState<"palette" | "help" | "pair">();
  useGlobalKeys(setOverlay);
  const [path] = useLocation();
  return (
    <>
      <Shell onPalette={() => setOverlay("palette")} onConnect={onConnect}>
        <Boundary key={path} what="This page">
          <Suspense fallback={null}>
            <Pages />
          </Suspense>
        </Boundary>
      </Shell>
      {overlay === "palette" && (
        <Palette
          onClose={() => setOverlay(undefined)}
          onHelp={() => setOverlay("help")}
          onConnect={onConnect}
          onPair={() => setOverlay("pair")}
        />
      )}
      {overlay === "help" && (
        <Suspense fallback={null}>
          <Help onClose={() => setOverlay(undefined)} />
        </Suspense>
      )}
      {overlay === "pair" && (
        <Suspense fallback={null}>
          <Pairing onClose={() => setOverlay(undefined)} />
        </Suspense>
      )}
      {logsIn && (
        <Suspense fallback={null}>
          <OpenedLogin />
        </Suspense>
      )}
      {hasPrompts && (
        <Suspense fallback={null}>
          <PromptDialogs />
        </Suspense>
      )}
      <Toasts />
    </>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/" component={SessionsPage} />
      <Route path="/new" component={NewPage} />
      <Route path="/inbox" component={InboxPage} />
      <Route path="/agents" component={AgentsPage} />
      <Route path="/runners" component={RunnersPage} />
      <Route path="/imports" component={ImportsPage} />
      <Route path="/settings/:part?">{({ part }) => <SettingsPage part={part} />}</Route>
      <Route path="/templates/_new">{() => <TemplateEditPage />}</Route>
      <Route path="/templates/:name/edit">{({ name }) => <TemplateEditPage key={name} name={name} />}</Route>
      <Route path="/templates/:name?">{({ name }) => <TemplatesPage name={name} />}</Route>
      <Route path="/triggers/_new">{() => <TriggerNewPage />}</Route>
      <Route path="/triggers/:name?">{({ name }) => <TriggersPage name={name} />}</Route>
      <Route path="/schedules/_new">{() => <ScheduleNewPage />}</Route>
      <Route path="/schedules/:name?">{({ name }) => <SchedulesPage name={name} />}</Route>
      <Route path="/webhooks/_new">{() => <WebhookNewPage />}</Route>
      <Route path="/webhooks/:id?">{({ id }) => <WebhooksPage id={id} />}</Route>
      <Route path="/sessions/:id/review">{({ id }) => <ReviewPage id={decodeURIComponent(id)} />}</Route>
      <Route path="/sessions/:id">{({ id }) => <SessionPage id={decodeURIComponent(id)} />}</Route>
      <Route path="/ai/runs/new">{() => <Redirect to="/new" replace />}</Route>
      <Route path="/ai/runs/:id">{({ id }) => <Redirect to={`/sessions/${id}`} replace />}</Route>
      <Route path="/ai/runs">{() => <Redirect to="/" replace />}</Route>
      <Route path="/ai">{() => <Redirect to="/new" replace />}</Route>
      <Route path="/sessions">{() => <Redirect to="/" replace />}</Route>
      <Route>
        <div className="p-6">
          <h1 className="mb-2 text-sm font-semibold">There is no such page</h1>
          <Link className="btn" href="/">
            All sessions
          </Link>
        </div>
      </Route>
    </Switch>
  );
}

function useGlobalKeys(setOverlay: (overlay: "palette" | "help") => void): void {
  const [path, go] = useLocation();
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOverlay("palette");
        return;
      }
      if (isForeign(event) || document.querySelector("dialog[open]")) return;
      if (collected(event)) return event.preventDefault();
      const run = keyOf(event.key, path, go, setOverlay);
      if (run) {
        event.preventDefault();
        run();
      }
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, [path, go, setOverlay]);
}

function keyOf(
  key: string,
  path: string,
  go: (to: string) => void,
  setOverlay: (overlay: "help") => void,
): (() => void) | undefined {
  switch (key) {
    case "n":
      if (!may("operator")) return undefined;
      return () => {
        collectTyped();
        go("/new");
      };
    case "g":
      return () => go("/");
    case "i":
      return () => go("/inbox");
    case "u":
      return () => {
        const next = nextUnread(/^\/sessions\/([^/]+)/.exec(path)?.[1]);
        go(next ? `/sessions/${next}` : "/inbox");
      };
    case "?":
      return () => setOverlay("help");
    case "/":
      return () => {
        if (path !== "/") go("/");
        setTimeout(() => document.getElementById("search")?.focus(), 50);
      };
    case "[":
    case "]":
      return () => {
        const { open, others } = switcherOf(overview.get().sessions, recent.get());
        const all = [...open, ...others];
        const at = all.findIndex((session) => path === `/sessions/${session.id}`);
        const next = all[(at + (key === "]" ? 1 : -1) + all.length) % all.length];
        if (next) go(`/sessions/${next.id}`);
      };
    default:
      return undefined;
  }
}
