// Who may do what: keys that are good, and people who came with a token of the provider.
import { useState } from "react";
import { api } from "../api/client";
import type { Member } from "../api/types";
import { Confirm } from "../parts/dialog";
import { moment } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { useMay } from "../state/me";
import { ProjectName } from "./keys";
import { Cell, Problem, Table, useLoaded } from "./loading";

export default function Members() {
  const { value, error } = useLoaded(api.members);
  const [leaving, setLeaving] = useState<Member>();
  const maySignOut = useMay("tenant");
  const signOut = async ({ actor, name }: Member) => {
    if (await orSay(api.signOutEverywhere(actor))) say(`${name || actor} is signed out everywhere.`);
  };
  return (
    <>
      <p className="mb-2 text-dim">
        What a person may do is said by the rules for their provider (<code>oidc_claims</code>), what a key may do when
        it is made.
      </p>
      <Problem text={error} />
      {value && (
        <Table label="Members" head={["Name", "Who", "Role", "For", "Since", "Last here", ""]}>
          {value.items.map((member) => (
            <tr key={`${member.actor} ${member.projectId}`} data-member={member.actor}>
              <Cell>{member.name}</Cell>
              <Cell>
                <code className="text-xs break-all">{member.actor}</code>
              </Cell>
              <Cell>{member.role}</Cell>
              <Cell>
                <ProjectName id={member.projectId} />
              </Cell>
              <Cell>{moment(member.firstSeenAt)}</Cell>
              <Cell>{member.lastSeenAt ? moment(member.lastSeenAt) : "never"}</Cell>
              <Cell>
                {maySignOut && !member.actor.startsWith("key:") && (
                  <button
                    type="button"
                    className="btn btn-bare text-bad"
                    aria-label={`Sign ${member.name || member.actor} out everywhere`}
                    onClick={() => setLeaving(member)}
                  >
                    Sign out
                  </button>
                )}
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      {value && !value.items.length && <p className="py-3 text-dim">Nobody came yet, and there are no keys.</p>}
      {leaving && (
        <Confirm
          title={`Sign ${leaving.name || leaving.actor} out everywhere?`}
          text="Their sign-ins in all browsers are over, and what is open there ends. They may sign in again unless your provider says otherwise."
          verb="Sign out"
          onClose={() => setLeaving(undefined)}
          onConfirm={() => void signOut(leaving)}
        />
      )}
    </>
  );
}
