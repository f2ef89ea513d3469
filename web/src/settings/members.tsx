// Who may do what: keys that are good, and people who came with a token of the provider.
import { api } from "../api/client";
import { moment } from "../parts/text";
import { ProjectName } from "./keys";
import { Cell, Problem, Table, useLoaded } from "./loading";

export default function Members() {
  const { value, error } = useLoaded(api.members);
  return (
    <>
      <p className="mb-2 text-dim">
        What a person may do is said by the rules for their provider (<code>oidc_claims</code>), what a key may do when
        it is made.
      </p>
      <Problem text={error} />
      {value && (
        <Table label="Members" head={["Name", "Who", "Role", "For", "Since", "Last here"]}>
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
            </tr>
          ))}
        </Table>
      )}
      {value && !value.items.length && <p className="py-3 text-dim">Nobody came yet, and there are no keys.</p>}
    </>
  );
}
