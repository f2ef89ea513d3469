// Who is here, and signing out: at the foot of the sidebar.
import { LogOut, User } from "lucide-react";
import { api } from "../api/client";
import { me } from "../state/me";
import { stopPush } from "../state/push";
import { useStore } from "../state/store";
import { Menu } from "./menu";
import { orSay } from "./toasts";

export function Who({ onConnect }: { onConnect(): void }) {
  const known = useStore(me);
  if (!known || known.actor === "local") return null;
  const name = known.name || known.actor;
  const where = known.tenant === "default" ? "" : ` of ${known.tenant}`;
  return (
    <div className="border-t border-line px-2 py-1">
      <Menu
        label={`You are ${name}, ${known.role}${where}`}
        up
        className="btn btn-bare w-full justify-start gap-2 px-2 text-left"
        button={
          <>
            <User size={14} aria-hidden className="shrink-0 text-dim" />
            <span className="min-w-0 flex-1">
              <span className="block truncate">{name}</span>{" "}
              <span className="block truncate text-2xs text-dim">
                {known.role}
                {where}
              </span>
            </span>
            {known.signedIn && <LogOut size={13} aria-hidden className="shrink-0 text-dim" />}
          </>
        }
        entries={
          known.signedIn
            ? [
                { label: "Sign out", onSelect: () => void orSay(signOut()) },
                { label: "Sign out everywhere", onSelect: () => void orSay(signOutEverywhere()) },
              ]
            : [{ label: "Server and token", onSelect: onConnect }]
        }
      />
    </div>
  );
}

/** Leaves this page: it shows nothing of who was here, and the provider may want to end its own sign-in. */
async function signOut(): Promise<void> {
  await stopPush().catch(() => undefined); // else this browser would go on to be told who asks what
  const { next } = await api.signOut();
  location.assign(next ?? "/");
}

/** In all browsers, this one too. */
async function signOutEverywhere(): Promise<void> {
  await stopPush().catch(() => undefined);
  await api.signOutEverywhere();
  location.assign("/");
}
