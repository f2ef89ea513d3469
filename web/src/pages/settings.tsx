// Who may do what and how much: for admins to change, and for everybody what counts for them.
import { lazy, Suspense, type ReactNode } from "react";
import { Link, Redirect } from "wouter";
import { me, useMay, type Need } from "../state/me";
import { useStore } from "../state/store";

const PARTS: { name: string; text: string; need: Need; Page: React.LazyExoticComponent<() => ReactNode> }[] = [
  { name: "usage", text: "Usage and limits", need: "viewer", Page: lazy(() => import("../settings/usage")) },
  { name: "keys", text: "Keys", need: "admin", Page: lazy(() => import("../settings/keys")) },
  { name: "members", text: "Members", need: "admin", Page: lazy(() => import("../settings/members")) },
  { name: "projects", text: "Projects", need: "viewer", Page: lazy(() => import("../settings/projects")) },
  { name: "audit", text: "Audit", need: "tenant", Page: lazy(() => import("../settings/audit")) },
];

export default function SettingsPage({ part }: { part?: string }) {
  const known = useStore(me);
  const found = PARTS.find(({ name }) => name === part);
  if (!found) return <Redirect to="/settings/usage" replace />;
  return (
    <div className="h-full overflow-auto">
      <header className="border-b border-line px-3 pt-2 sm:px-4">
        <h1 className="text-sm font-semibold">
          Settings{" "}
          {known && (
            <span className="font-normal text-dim">
              {known.actor} is {known.role} of {reachOf(known.reach, known.tenant, known.projects, known.project)}
            </span>
          )}
        </h1>
        <nav aria-label="Settings" className="-mb-px flex gap-1 overflow-x-auto pt-1">
          {PARTS.map(({ name, text, need }) => (
            <Link
              key={name}
              href={`/settings/${name}`}
              data-needs={need}
              aria-current={name === part ? "page" : undefined}
              className={`flex min-h-10 items-center border-b-2 px-2 whitespace-nowrap sm:min-h-8 ${name === part ? "border-accent font-medium" : "border-transparent text-dim hover:text-ink"}`}
            >
              {text}
            </Link>
          ))}
        </nav>
      </header>
      <div className="mx-auto max-w-[64rem] p-3 sm:p-4">
        <Suspense fallback={null}>
          <Allowed need={found.need}>
            <found.Page />
          </Allowed>
        </Suspense>
      </div>
    </div>
  );
}

function Allowed({ need, children }: { need: Need; children: ReactNode }) {
  return useMay(need) ? children : <p className="text-dim">This page is for admins. Ask one of yours for a key.</p>;
}

function reachOf(
  reach: string,
  tenant: string,
  projects: readonly { id: string; name: string }[],
  project: string,
): string {
  if (reach === "server") return "the server";
  if (reach === "tenant") return `the tenant ${tenant}`;
  return `${tenant}/${projects.find(({ id }) => id === project)?.name ?? project}`;
}
