// Templates: all of them, one with its revisions and what differs between them, and ways to begin with it or change it.
import { Plus } from "lucide-react";
import { useCallback, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { api, messageOf } from "../api/client";
import type { TemplateDifference, TemplateRevision } from "../api/types";
import { Age, Empty, Facts, Frame, useLoaded } from "../parts/automation";
import { Diff } from "../parts/diff";
import { Confirm } from "../parts/dialog";
import { orSay } from "../parts/toasts";
import { shortRevision } from "../state/templates";
import { TestRun } from "./template_run";

export default function TemplatesPage({ name }: { name?: string }) {
  return name === undefined ? <All /> : <One key={name} name={name} />;
}

function All() {
  const { value, error } = useLoaded(api.templates);
  return (
    <Frame
      here="templates"
      error={error}
      actions={
        <Link className="btn" href="/templates/_new">
          <Plus size={13} aria-hidden /> New template
        </Link>
      }
    >
      {!value?.length && !error && (
        <Empty loaded={Boolean(value)}>
          None yet. A template is a stored agent: what it is told, which agent it is, and where it works.
        </Empty>
      )}
      <ul aria-label="Templates">
        {value?.map((template) => (
          <li key={template.name}>
            <Link
              href={`/templates/${template.name}`}
              className="flex flex-wrap items-center gap-x-3 border-b border-line/60 px-3 py-2 hover:bg-hover sm:px-4"
            >
              <span className="font-medium">{template.name}</span>
              {template.agent && <span className="chip">{template.agent}</span>}
              <span className="min-w-0 flex-1 truncate text-dim">{template.description}</span>
              <Age iso={template.createdAt} />
            </Link>
          </li>
        ))}
      </ul>
    </Frame>
  );
}

function One({ name }: { name: string }) {
  const { value: revisions, error } = useLoaded(useCallback(() => api.templateRevisions(name), [name]));
  const [asking, setAsking] = useState<"run" | "remove">();
  const [, go] = useLocation();
  const latest = revisions?.find(({ tags }) => tags?.includes("latest")) ?? revisions?.[0];
  return (
    <Frame
      here="templates"
      name={name}
      error={error}
      actions={
        latest && (
          <>
            <button type="button" className="btn" onClick={() => setAsking("run")}>
              Test run
            </button>
            <Link className="btn" href={`/templates/${name}/edit`}>
              Edit
            </Link>
            <button type="button" className="btn text-bad" onClick={() => setAsking("remove")}>
              Remove
            </button>
          </>
        )
      }
    >
      {latest && <About template={latest} />}
      <h2 className="px-3 pt-2 font-medium sm:px-4">Revisions</h2>
      {!revisions && !error && <Empty loaded={false}>{null}</Empty>}
      <ul aria-label="Revisions">
        {revisions?.map((revision, index) => (
          <Revision key={revision.revision} revision={revision} before={revisions[index + 1]} />
        ))}
      </ul>
      {asking === "run" && latest && <TestRun template={latest} onClose={() => setAsking(undefined)} />}
      {asking === "remove" && (
        <Confirm
          title={`Remove ${name}?`}
          text="It is forgotten with all its revisions, and triggers and schedules that name it fail. Sessions that began with it go on."
          verb="Remove"
          onClose={() => setAsking(undefined)}
          onConfirm={() => void orSay(api.removeTemplate(name)).then((done) => done && go("/templates"))}
        />
      )}
    </Frame>
  );
}

/** What a revision says, as the server read it. */
export function About({ template }: { template: TemplateRevision }) {
  const { variables = {} } = template;
  return (
    <div className="border-b border-line/60 p-3 sm:px-4">
      <Facts
        of={{
          Description: template.description,
          Version: template.version,
          License: template.license,
          Agent: template.agent,
          Variables: Object.keys(variables).length > 0 && (
            <ul>
              {Object.entries(variables).map(([name, variable]) => (
                <li key={name}>
                  <code>{name}</code>{" "}
                  <span className="text-dim">
                    {[variable.type, variable.required && "required", variable.description].filter(Boolean).join(", ")}
                  </span>
                </li>
              ))}
            </ul>
          ),
          Skills: template.skills?.join(", "),
          Prompt: template.hasPrompt ? "says itself what to do" : "is told what to do when it begins",
          Files: `${template.files ?? 0}, ${template.size ?? 0} bytes together`,
        }}
      />
    </div>
  );
}

function Revision({ revision, before }: { revision: TemplateRevision; before?: TemplateRevision }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <li className="border-b border-line/60 px-3 py-2 sm:px-4">
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <code title={revision.revision}>{shortRevision(revision.revision)}</code>
        {revision.tags?.map((tag) => (
          <span key={tag} className="chip bg-accent-soft text-ink">
            {tag}
          </span>
        ))}
        <span className="min-w-0 flex-1 truncate text-2xs text-dim">
          {[revision.version, revision.commit && `commit ${revision.commit.slice(0, 10)}`].filter(Boolean).join(" · ")}
        </span>
        <Age iso={revision.createdAt} />
        {before && (
          <button type="button" className="btn" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            {isOpen ? "Hide" : "What changed"}
          </button>
        )}
      </div>
      {isOpen && before && <Changes name={revision.name} old={before.revision} new={revision.revision} />}
    </li>
  );
}

function Changes({ name, old, new: now }: { name: string; old: string; new: string }) {
  const [found, setFound] = useState<TemplateDifference>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => {
    api.templateDiff(name, old, now).then(setFound, (error: unknown) => setProblem(messageOf(error)));
  }, [name, old, now]);
  if (problem)
    return (
      <p role="alert" className="pt-2 text-bad">
        {problem}
      </p>
    );
  return (
    <div className="space-y-2 pt-2">
      {found?.changes.map(({ path, change, diff }) => (
        <section key={path} className="rounded-md border border-line" aria-label={path}>
          <h3 className="px-3 py-1">
            <code>{path}</code> <span className="text-dim">{change}</span>
          </h3>
          {diff ? (
            <Diff text={diff} label={`What changed in ${path}`} />
          ) : (
            <p className="px-3 pb-2 text-dim">No text.</p>
          )}
        </section>
      ))}
    </div>
  );
}
