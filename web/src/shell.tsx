// The frame of every page: navigation, the switcher of sessions, and how the connection is.
import {
  Bot,
  Command,
  Inbox,
  List,
  Menu as MenuIcon,
  Moon,
  Plus,
  Server,
  Settings,
  Sun,
  Workflow,
  X,
} from "lucide-react";
import { useMemo, useState, type ReactNode } from "react";
import { Link, useLocation } from "wouter";
import { connection, connectTo } from "./api/connection";
import type { Session } from "./api/types";
import { titleOf } from "./state/titles";
import { Dot, needOf, newsOf, waitsForLimit, wordOf } from "./parts/status";
import { Who } from "./parts/who";
import { placeOf } from "./state/places";
import { recent, visited } from "./state/recent";
import { me, type Need } from "./state/me";
import { overview, startOverview } from "./state/sessions";
import { useSelected, useStore } from "./state/store";
import { theme, toggleTheme } from "./state/theme";
import { isUnread, seen, unreadOf } from "./state/unread";

/** How many things the inbox has. */
export function useInboxCount(): number {
  const asks = useSelected(overview, (known) => known.asks.length);
  const sessions = useSelected(overview, (known) => known.sessions);
  const known = useStore(seen);
  return asks + useMemo(() => unreadOf(sessions.values(), known).length, [sessions, known]);
}

export function Shell({
  children,
  onPalette,
  onConnect,
}: {
  children: ReactNode;
  onPalette(): void;
  onConnect(): void;
}) {
  const [open, setOpen] = useState(false);
  const asks = useSelected(overview, (known) => known.asks.length);
  const unread = useInboxCount() - asks;
  return (
    <div className="flex h-full">
      <a href="#main" className="skip">
        Skip to the content
      </a>
      <div
        className={`${open ? "fixed inset-0 z-40 flex" : "hidden"} lg:static lg:z-auto lg:flex`}
        onKeyDown={(event) => event.key === "Escape" && open && (event.stopPropagation(), setOpen(false))}
      >
        <Sidebar onNavigate={() => setOpen(false)} onPalette={onPalette} onConnect={onConnect} />
        {open && (
          <button
            type="button"
            aria-label="Close the menu"
            className="flex-1 bg-black/35 lg:hidden"
            onClick={() => setOpen(false)}
          />
        )}
      </div>
      <div className="flex min-w-0 flex-1 flex-col">
        <div role="banner" className="flex items-center gap-2 border-b border-line px-2 py-1 lg:hidden">
          <button type="button" className="btn btn-bare px-1.5" aria-label="Menu" onClick={() => setOpen(true)}>
            <MenuIcon size={17} />
          </button>
          <Link href="/" className="flex items-center font-semibold pointer-coarse:min-h-10">
            Ostler
          </Link>
          <span className="flex-1" />
          {asks + unread > 0 && (
            <Link href="/inbox" className="flex min-h-10 items-center px-1">
              <span
                className={`rounded-full px-2.5 py-0.5 text-xs font-medium ${asks ? "bg-warn-soft text-warn" : "bg-ok-soft text-ok"}`}
              >
                {asks ? `${asks} waiting` : `${unread} new`}
              </span>
            </Link>
          )}
        </div>
        <LinkState />
        <main id="main" className="min-h-0 flex-1" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}

function LinkState() {
  const link = useSelected(overview, (known) => known.link);
  return (
    <div role="status">
      {link === "lost" && (
        <p className="bg-warn-soft px-4 py-1 text-center text-warn">The server does not answer. Trying again.</p>
      )}
    </div>
  );
}

function Sidebar({ onNavigate, onPalette, onConnect }: { onNavigate(): void; onPalette(): void; onConnect(): void }) {
  const waiting = useInboxCount();
  const shown = useStore(theme);
  const isDark = document.documentElement.dataset.theme === "dark";
  return (
    <aside
      aria-label="Ostler"
      className="flex w-60 shrink-0 flex-col border-r border-line bg-sunken"
      data-theme-choice={shown}
    >
      <div className="flex items-center gap-2 px-3 pt-3 pb-2">
        <img src="/favicon.svg" alt="" className="size-5" />
        <Link href="/" className="flex items-center font-semibold pointer-coarse:min-h-10" onClick={onNavigate}>
          Ostler
        </Link>
        <span className="flex-1" />
        <button
          type="button"
          className="btn btn-bare px-1 text-dim"
          aria-label="Commands"
          title="Commands (Ctrl K)"
          onClick={onPalette}
        >
          <Command size={14} />
        </button>
        <button
          type="button"
          className="btn btn-bare px-1 text-dim"
          aria-label={isDark ? "Light theme" : "Dark theme"}
          title="Dark or light"
          onClick={toggleTheme}
        >
          {isDark ? <Sun size={14} /> : <Moon size={14} />}
        </button>
      </div>
      <nav aria-label="Main" className="space-y-px px-2" onClick={onNavigate}>
        <NavLink href="/new" icon={<Plus size={15} />} text="New session" needs="operator" />
        <NavLink href="/" icon={<List size={15} />} text="Sessions" />
        <NavLink href="/inbox" icon={<Inbox size={15} />} text="Inbox" count={waiting} />
        <NavLink href="/agents" icon={<Bot size={15} />} text="Agents" />
        <NavLink href="/runners" icon={<Server size={15} />} text="Runners" needs="server-viewer" />
        <NavLink href="/settings/usage" below="/settings" icon={<Settings size={15} />} text="Settings" />
        <NavLink
          href="/templates"
          below={["/templates", "/triggers", "/schedules", "/webhooks"]}
          icon={<Workflow size={15} />}
          text="Automation"
        />
      </nav>
      <Switcher onNavigate={onNavigate} />
      <Projects />
      <Who onConnect={onConnect} />
      <button
        type="button"
        className="border-t border-line px-4 py-2 text-left pointer-coarse:min-h-10 text-2xs text-dim hover:bg-hover"
        onClick={onConnect}
      >
        <Where />
      </button>
    </aside>
  );
}

/** The projects that the token may use, where there are several; the page shows one at a time. */
function Projects() {
  const known = useStore(me);
  const [, go] = useLocation();
  if (!known || known.projects.length < 2) return null;
  const choose = (project: string) => {
    connectTo({ ...connection.get(), project });
    go("/");
    startOverview();
  };
  return (
    <label className="block border-t border-line px-3 py-2">
      <span className="sr-only">Project</span>
      <select
        className="field"
        aria-label="Project"
        value={known.project}
        onChange={(event) => choose(event.target.value)}
      >
        {known.projects.map(({ id, name, tenant }) => (
          <option key={id} value={id}>
            {tenant === known.tenant ? name : `${tenant}/${name}`}
          </option>
        ))}
      </select>
    </label>
  );
}

function Where() {
  const link = useSelected(overview, (known) => known.link);
  const words = { connecting: "Connecting", open: "Connected", lost: "Not connected", refused: "Refused" }[link];
  return (
    <span className="flex items-center gap-1.5">
      <span aria-hidden className={`size-1.5 rounded-full ${link === "open" ? "bg-ok" : "bg-warn"}`} />
      {words}
    </span>
  );
}

interface NavLinkProps {
  href: string;
  /** Where all pages begin that it stands for, if they are more than one. */
  below?: string | readonly string[];
  icon: ReactNode;
  text: string;
  count?: number;
  needs?: Need;
}

function NavLink({ href, below, icon, text, count = 0, needs }: NavLinkProps) {
  const [path] = useLocation();
  const isHere = path === href || [below ?? []].flat().some((start) => path.startsWith(start));
  return (
    <Link
      href={href}
      data-needs={needs}
      aria-current={isHere ? "page" : undefined}
      className={`flex items-center gap-2 rounded-md px-2 py-1 hover:bg-hover ${isHere ? "bg-hover font-medium" : ""}`}
    >
      <span className="text-dim" aria-hidden>
        {icon}
      </span>
      {text}
      {count > 0 && (
        <span className="ml-auto rounded-full bg-warn-soft px-1.5 text-2xs text-warn tabular-nums">{count}</span>
      )}
    </Link>
  );
}

/** Sessions that were opened here, then others that live: one sees from anywhere what goes on elsewhere. */
export function switcherOf(
  sessions: ReadonlyMap<string, Session>,
  opened: readonly string[],
): { open: Session[]; others: Session[] } {
  const open = opened.flatMap((id) => sessions.get(id) ?? []);
  const others = [...sessions.values()]
    .filter((session) => !opened.includes(session.id))
    .filter((session) => !session.archived)
    .filter(
      (session) =>
        ["waiting", "working"].includes(needOf(session)) || waitsForLimit(session) || isUnread(session, seen.get()),
    )
    .sort((one, other) => needOf(one).localeCompare(needOf(other)) || other.updatedAt.localeCompare(one.updatedAt));
  return { open, others };
}

function Switcher({ onNavigate }: { onNavigate(): void }) {
  const sessions = useSelected(overview, (known) => known.sessions);
  const opened = useStore(recent);
  const { open, others } = switcherOf(sessions, opened);
  return (
    <div className="mt-3 min-h-0 flex-1 overflow-y-auto px-2 pb-3" onClick={onNavigate}>
      <SwitcherGroup title="Open" sessions={open} closable />
      <SwitcherGroup title="Also live" sessions={others.slice(0, 20)} more={others.length - 20} />
    </div>
  );
}

function PlaceName({ session }: { session: Session }) {
  const place = placeOf(session);
  return place && <span className="block truncate text-2xs text-dim">{place.name}</span>;
}

function SwitcherGroup({
  title,
  sessions,
  more = 0,
  closable = false,
}: {
  title: string;
  sessions: Session[];
  more?: number;
  closable?: boolean;
}) {
  const [path] = useLocation();
  const known = useStore(seen);
  if (!sessions.length) return null;
  return (
    <section aria-label={title} className="mb-3">
      <h2 className="px-2 pb-0.5 text-2xs font-medium text-dim">{title}</h2>
      <ul>
        {sessions.map((session) => {
          const isHere = path === `/sessions/${session.id}`;
          const unread = isUnread(session, known);
          return (
            <li
              key={session.id}
              className={`group flex items-center rounded-md hover:bg-hover ${isHere ? "bg-hover" : ""}`}
            >
              <Link
                href={`/sessions/${session.id}`}
                aria-current={isHere ? "page" : undefined}
                className="flex min-w-0 flex-1 items-center gap-2 px-2 py-1"
              >
                <Dot session={session} unread={unread} />
                <span className="min-w-0 flex-1">
                  <span className={`block truncate ${unread ? "font-semibold" : ""}`}>{titleOf(session)}</span>
                  {waitsForLimit(session) ? (
                    <span className="block truncate text-2xs text-dim">{wordOf(session)}</span>
                  ) : (
                    <PlaceName session={session} />
                  )}
                </span>
                <span className="sr-only">
                  {unread && "Not seen: "}
                  {waitsForLimit(session) ? "" : unread ? newsOf(session) : wordOf(session)}
                </span>
              </Link>
              {closable && !isHere && (
                <button
                  type="button"
                  aria-label={`Close ${titleOf(session)}`}
                  className="px-1.5 text-dim opacity-0 group-hover:opacity-100 focus-visible:opacity-100"
                  onClick={(event) => (event.stopPropagation(), visited(session.id, true))}
                >
                  <X size={12} />
                </button>
              )}
            </li>
          );
        })}
      </ul>
      {more > 0 && <p className="px-2 text-2xs text-dim">and {more} more</p>}
    </section>
  );
}
