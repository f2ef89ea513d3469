// What a new session works with: a folder or a repository, one of those before or another one.
import { Folder, FolderGit2, FolderOpen } from "lucide-react";
import { useEffect, useMemo, useState } from "react";
import { api, messageOf } from "../api/client";
import type { GitRefs } from "../api/types";
import { Field, Listed } from "../parts/agent_fields";
import { PLACES, repositoryUrl, type Draft, type Place } from "../state/draft";
import { placesOf, type WorkPlace } from "../state/places";
import { overview } from "../state/sessions";
import { useSelected } from "../state/store";
import { FolderPicker } from "./folder_picker";

type Change = (part: Partial<Draft>) => void;

const MOST_RECENT = 6;

export function Files({ draft, change }: { draft: Draft; change: Change }) {
  const isFolder = draft.place === "folder" || draft.place === "copy";
  return (
    <div className="grid gap-3 sm:grid-cols-2">
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
      {isFolder && <FolderField draft={draft} change={change} />}
      {draft.place === "git" && <Repository draft={draft} change={change} />}
      <Recent draft={draft} change={change} />
    </div>
  );
}

function Recent({ draft, change }: { draft: Draft; change: Change }) {
  const sessions = useSelected(overview, (known) => known.sessions);
  const places = useMemo(() => placesOf(sessions.values()).slice(0, MOST_RECENT), [sessions]);
  if (!places.length) return null;
  const chosen = draft.place === "git" ? draft.url : draft.place === "empty" ? "" : draft.cwd;
  return (
    <div className="sm:col-span-2">
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
              className={`btn ${chosen === place.key ? "border-accent bg-accent-soft" : ""}`}
              onClick={() => change(chosenFrom(place))}
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

function FolderField({ draft, change }: { draft: Draft; change: Change }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div>
      <div className="flex items-end gap-1.5">
        <div className="min-w-0 flex-1">
          <Field label="Folder">
            <input
              required
              className="field font-mono text-xs"
              placeholder="~/project or /path/to/project"
              value={draft.cwd}
              onChange={(event) => change({ cwd: event.target.value })}
            />
          </Field>
        </div>
        <button type="button" className="btn" onClick={() => setOpen(true)}>
          <FolderOpen size={14} aria-hidden /> Browse
        </button>
      </div>
      <p className="mt-1 text-2xs text-dim">On the server's machine.</p>
      {isOpen && (
        <FolderPicker
          start={draft.cwd.trim()}
          onChoose={(cwd) => (change({ cwd }), setOpen(false))}
          onClose={() => setOpen(false)}
        />
      )}
    </div>
  );
}

function Repository({ draft, change }: { draft: Draft; change: Change }) {
  const { refs, problem, looking } = useRefs(draft.url.trim());
  const branches = refs?.refs.map((ref): [string, string] => [ref.name, ref.kind]) ?? [];
  const usual = refs?.defaultBranch ? `The default branch, ${refs.defaultBranch}` : "The default branch";
  return (
    <>
      <Field label="Repository">
        <input
          required
          className="field font-mono text-xs"
          placeholder="~/project, owner/project or https://example.org/team/project.git"
          value={draft.url}
          onChange={(event) => change({ url: event.target.value })}
        />
      </Field>
      <Listed
        label="Branch or tag"
        mono
        placeholder={usual}
        value={draft.branch}
        options={branches}
        hint={
          <span role="status">
            {looking
              ? "Looking at its branches…"
              : (problem ??
                (refs ? (branches.length === 1 ? "1 branch" : `${branches.length} branches and tags`) : ""))}
          </span>
        }
        onChange={(branch) => change({ branch })}
      />
    </>
  );
}

const PAUSE = 500;

/** The branches of a repository, once its address has stood still for a moment. */
function useRefs(url: string): { refs?: GitRefs; problem?: string; looking: boolean } {
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
