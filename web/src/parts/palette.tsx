// Everything by name: Ctrl+K or Cmd+K, a few letters, Enter.
import { Fragment, useMemo, useState, type KeyboardEvent } from "react";
import { useLocation } from "wouter";
import { matches, titleOf } from "../state/titles";
import { actionsOf } from "../session/actions";
import { may, type Need } from "../state/me";
import { openedPrompts } from "../state/prompts";
import { overview } from "../state/sessions";
import { useStore } from "../state/store";
import { toggleTheme } from "../state/theme";
import { writtenFor } from "../state/written";
import { Dialog } from "./dialog";
import { Dot, needOf } from "./status";

interface Entry {
  id: string;
  label: string;
  hint: string;
  session?: Parameters<typeof needOf>[0];
  needs?: Need;
  run(): void;
}

function groupOf({ id, session }: Entry): string {
  if (session) return "Sessions";
  return id.startsWith("own-") ? "This session" : "Go to";
}

const RANK = { waiting: 0, working: 1, idle: 2, ended: 3 };

interface Props {
  onClose(): void;
  onHelp(): void;
  onConnect(): void;
  onPair(): void;
}

export function Palette({ onClose, onHelp, onConnect, onPair }: Props) {
  const { sessions } = useStore(overview);
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [path, go] = useLocation();
  const entries = useMemo(() => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    const actions: Entry[] = [
      { id: "new", label: "New session", hint: "n", needs: "operator", run: () => go("/new") },
      { id: "sessions", label: "All sessions", hint: "g", run: () => go("/") },
      {
        id: "imports",
        label: "Earlier conversations of agents' own programs",
        hint: "",
        needs: "admin",
        run: () => go("/imports"),
      },
      { id: "inbox", label: "Inbox", hint: "i", run: () => go("/inbox") },
      { id: "agents", label: "Agents", hint: "", run: () => go("/agents") },
      { id: "runners", label: "Runners", hint: "", needs: "server-viewer", run: () => go("/runners") },
      { id: "settings", label: "Settings", hint: "", run: () => go("/settings/usage") },
      { id: "keys", label: "API keys", hint: "", needs: "admin", run: () => go("/settings/keys") },
      { id: "audit", label: "Audit log", hint: "", needs: "tenant", run: () => go("/settings/audit") },
      { id: "templates", label: "Templates", hint: "", run: () => go("/templates") },
      { id: "triggers", label: "Triggers", hint: "", run: () => go("/triggers") },
      { id: "schedules", label: "Schedules", hint: "", run: () => go("/schedules") },
      { id: "webhooks", label: "Webhooks", hint: "", needs: "operator", run: () => go("/webhooks") },
      { id: "prompts", label: "Saved prompts", hint: "", run: () => openedPrompts.set({ what: "all" }) },
      { id: "theme", label: "Switch between dark and light", hint: "", run: toggleTheme },
      { id: "connect", label: "Server and token", hint: "", run: onConnect },
      { id: "pair", label: "Open on a phone", hint: "", needs: "tenant", run: onPair },
      { id: "help", label: "Keyboard help", hint: "?", run: onHelp },
    ];
    const here = sessions.get(/^\/sessions\/([^/]+)$/.exec(path)?.[1] ?? "");
    const own = (here ? actionsOf(here, go) : []).map(({ label, hint, onSelect }): Entry => ({
      id: `own-${label.replaceAll(" ", "-")}`,
      label,
      hint: hint ?? "this session",
      run: onSelect,
    }));
    const written = here && writtenFor(here.id);
    if (written && may("operator"))
      own.push({
        id: "own-save-prompt",
        label: "Save as prompt",
        hint: "what is written here",
        run: () => openedPrompts.set({ what: "save", text: written }),
      });
    const fits = (entry: Entry) =>
      (!entry.needs || may(entry.needs)) && words.every((word) => entry.label.toLowerCase().includes(word));
    const fitting = [...own, ...actions].filter(fits);
    const found = [...sessions.values()]
      .filter((session) => matches(session, words) && (words.length || !session.archived))
      .sort((one, other) => RANK[needOf(one)] - RANK[needOf(other)] || other.updatedAt.localeCompare(one.updatedAt))
      .slice(0, 30)
      .map((session): Entry => ({
        id: session.id,
        label: titleOf(session),
        hint: session.agent.type,
        session,
        run: () => go(`/sessions/${session.id}`),
      }));
    if (words.length) return here ? [...fitting, ...found] : [...found, ...fitting];
    const others = found.filter((entry) => entry.id !== here?.id);
    return [...others.slice(0, 5), ...actions.filter(fits), ...own, ...others.slice(5)];
  }, [text, sessions, path, go, onHelp, onConnect, onPair]);
  const selected = Math.min(at, entries.length - 1);
  const run = (entry: Entry | undefined) => {
    onClose();
    if (entry) setTimeout(entry.run);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt(Math.min(selected + 1, entries.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(selected - 1, 0));
    else if (event.key === "Enter") run(entries[selected]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Commands" bare onClose={onClose} className="mt-[12dvh] w-[36rem]">
      <input
        autoFocus
        role="combobox"
        aria-expanded
        aria-controls="palette-list"
        aria-activedescendant={entries[selected] && `palette-${entries[selected].id}`}
        aria-label="Command or session"
        className="w-full border-b border-line bg-transparent px-4 py-3 text-sm outline-none"
        placeholder="Go to a session or run a command"
        value={text}
        onChange={(event) => (setText(event.target.value), setAt(0))}
        onKeyDown={onKey}
      />
      <ul
        id="palette-list"
        role="listbox"
        aria-label="Commands and sessions"
        className="max-h-[50dvh] overflow-auto p-1"
      >
        {entries.map((entry, index) => (
          <Fragment key={entry.id}>
            {groupOf(entry) !== (index > 0 && groupOf(entries[index - 1]!)) && (
              <li role="presentation" className="px-3 pt-2 pb-0.5 text-2xs font-medium text-dim">
                {groupOf(entry)}
              </li>
            )}
            <li
              id={`palette-${entry.id}`}
              role="option"
              aria-selected={index === selected}
              ref={index === selected ? (node) => node?.scrollIntoView({ block: "nearest" }) : undefined}
              className={`flex cursor-pointer items-center gap-2 rounded px-3 py-1.5 ${index === selected ? "bg-hover" : ""}`}
              onMouseMove={() => setAt(index)}
              onClick={() => run(entry)}
            >
              {entry.session && <Dot session={entry.session} />}
              <span className="min-w-0 flex-1 truncate">{entry.label}</span>
              <span className="text-2xs text-dim">{entry.hint}</span>
            </li>
          </Fragment>
        ))}
        {!entries.length && <li className="px-3 py-2 text-dim">Nothing matches.</li>}
      </ul>
    </Dialog>
  );
}
