// What a new session works with: a folder or a repository, one of those before or another one.
import { Folder, FolderGit2, FolderOpen } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { api, messageOf } from "../api/client";
import type { GitRefs } from "../api/types";
import { Field, Listed } from "../parts/agent_fields";
import type { Chip } from "../parts/chips";
import { mayHaveToken, PLACES, repositoryUrl, type Draft, type Place } from "../state/draft";
import { nameOf, placesOf, type WorkPlace } from "../state/places";
import { overview } from "../state/sessions";
import { useSelected } from "../state/store";
import { FolderPicker } from "./folder_picker";

type Change = (part: Partial<Draft>) => void;

const MOST_RECENT = 8;

/** The chips of what it works with: the place, and the branch of a repository. */
export function useFiles(draft: Draft, change: Change, close: () => void): Chip[] {
  const found = useRefs(draft.place === "git" ? draft.url.trim() : "");
  const isGit = draft.place === "git";
  const Icon = isGit ? FolderGit2 : Folder;
  const place: Chip = {
    name: "place",
    label: "Place",
    value: placeWords(draft),
    icon: <Icon size={14} aria-hidden />,
    panel: <PlacePanel draft={draft} change={change} close={close} found={found} />,
  };
  if (!isGit) return [place];
  const usual = found.refs?.defaultBranch;
  const branch: Chip = {
    name: "branch",
    label: "Branch",
    value: draft.branch || usual || "The default branch",
    panel: (
      <Listed
        label="Branch or tag"
        mono
        placeholder={usual ? `The default branch, ${usual}` : "The default branch"}
        value={draft.branch}
        options={found.refs?.refs.map((ref): [string, string] => [ref.name, ref.kind]) ?? []}
        onChange={(name) => change({ branch: name })}
      />
    ),
  };
  return [place, branch];
}

function placeWords({ place, cwd, url }: Draft): string {
  switch (place) {
    case "empty":
      return "A new, empty folder";
    case "folder":
      return cwd.trim() ? nameOf(cwd.trim()) : "Which folder?";
    case "copy":
      return cwd.trim() ? `A copy of ${nameOf(cwd.trim())}` : "A copy of which folder?";
    case "git":
      return url.trim() ? nameOf(url.trim()) : "Which repository?";
  }
}

interface PanelProps {
  draft: Draft;
  change: Change;
  close(): void;
  found: Refs;
}

function PlacePanel({ draft, change, close, found }: PanelProps) {
  return (
    <>
      <Recent draft={draft} onChoose={(part) => (change(part), close())} />
      <Field label="Files">
        <select
          className="field"
          value={draft.place}
          onChange={(event) => change({ place: event.target.value as Place })}
        >
          {Object.entries(PLACES).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </Field>
      {(draft.place === "folder" || draft.place === "copy") && (
        <PathField
          label="Folder"
          hint="On the server's machine."
          placeholder="~/project or /path/to/project"
          value={draft.cwd}
          onChange={(cwd) => change({ cwd })}
        />
      )}
      {draft.place === "git" && (
        <>
          <PathField
            label="Repository"
            hint={<span role="status">{refsWords(found)}</span>}
            placeholder="~/project, owner/project or https://example.org/team/project.git"
            value={draft.url}
            onChange={(url) => change({ url })}
          />
          {mayHaveToken(draft.url) && (
            <Field label="Token" hint="Only for a private repository: one that may read it. It is never shown again.">
              <input
                type="password"
                autoComplete="off"
                className="field font-mono text-xs"
                value={draft.token}
                onChange={(event) => change({ token: event.target.value })}
              />
            </Field>
          )}
        </>
      )}
    </>
  );
}

function Recent({ draft, onChoose }: { draft: Draft; onChoose: Change }) {
  const sessions = useSelected(overview, (known) => known.sessions);
  const places = useMemo(() => placesOf(sessions.values()).slice(0, MOST_RECENT), [sessions]);
  if (!places.length) return null;
  const chosen = draft.place === "git" ? draft.url : draft.place === "empty" ? "" : draft.cwd;
  return (
    <div>
      <p className="label" id="recent-places">
        Recent
      </p>
      <ul className="flex flex-wrap gap-1.5" aria-labelledby="recent-places">
        {places.map((place) => (
          <li key={place.key}>
            <button
              type="button"
              title={place.key}
              aria-pressed={chosen === place.key}
              className="btn"
              onClick={() => onChoose(chosenFrom(place))}
            >
              {place.kind === "git" ? <FolderGit2 size={13} aria-hidden /> : <Folder size={13} aria-hidden />}
              {place.name}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

export function chosenFrom({ kind, key }: Pick<WorkPlace, "kind" | "key">): Partial<Draft> {
  return kind === "git" ? { place: "git", url: key, branch: "" } : { place: kind, cwd: key };
}

interface PathProps {
  label: string;
  hint: React.ReactNode;
  placeholder: string;
  value: string;
  onChange(path: string): void;
}

/** A path or an address; folders of the server's machine can be looked for. */
function PathField({ label, hint, placeholder, value, onChange }: PathProps) {
  const [isOpen, setOpen] = useState(false);
  const isPath = /^[~/]/.test(value.trim());
  return (
    <div>
      <div className="flex items-end gap-1.5">
        <div className="min-w-0 flex-1">
          <Field label={label}>
            <input
              className="field font-mono text-xs"
              placeholder={placeholder}
              value={value}
              onChange={(event) => onChange(event.target.value)}
            />
          </Field>
        </div>
        <button type="button" className="btn" onClick={() => setOpen(true)}>
          <FolderOpen size={14} aria-hidden /> Browse
        </button>
      </div>
      <p className="mt-1 text-2xs text-dim">{hint}</p>
      {isOpen && (
        <FolderPicker
          start={isPath ? value.trim() : ""}
          onChoose={(path) => (onChange(path), setOpen(false))}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
  );
}

function refsWords({ refs, problem, looking }: Refs): string {
  if (looking) return "Looking at its branches…";
  if (!refs) return problem ?? "";
  return refs.refs.length === 1 ? "1 branch" : `${refs.refs.length} branches and tags`;
}

interface Refs {
  refs?: GitRefs;
  problem?: string;
  looking: boolean;
}

const PAUSE = 500;

/** The branches of a repository, once its address has stood still for a moment. */
function useRefs(url: string): Refs {
  const [found, setFound] = useState<{ url: string; refs?: GitRefs; problem?: string }>();
  const isWhole =
    /^(\/|~\/|[\w-]+\/[\w.-]+$|[\w-]+\.[\w.-]+\/.+\/|https?:\/\/[^/]+\/.|ssh:\/\/[^/]+\/.|[^/\s]+:.)/.test(url);
  useEffect(() => {
    if (!isWhole) return;
    let gone = false;
    const timer = setTimeout(() => {
      const asked = url.startsWith("~")
        ? api.folders(url).then(({ path }) => path)
        : Promise.resolve(repositoryUrl(url));
      asked.then(api.refs).then(
        (refs) => !gone && setFound({ url, refs }),
        (error: unknown) => !gone && setFound({ url, problem: messageOf(error) }),
      );
    }, PAUSE);
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [url, isWhole]);
  const isIt = isWhole && found?.url === url;
  return { refs: isIt ? found.refs : undefined, problem: isIt ? found.problem : undefined, looking: isWhole && !isIt };
}
