// Projects of the tenant, and the tenants themselves for who may use the whole server.
import { useState } from "react";
import { api } from "../api/client";
import { Confirm } from "../parts/dialog";
import { moment } from "../parts/text";
import { orSay, say } from "../parts/toasts";
import { loadMe, me, useMay } from "../state/me";
import { useStore } from "../state/store";
import { Cell, Problem, Table, useLoaded } from "./loading";

export default function Projects() {
  const known = useStore(me);
  const isServer = useMay("server");
  const { value, error, again } = useLoaded(api.projects);
  const change = async (work: Promise<unknown>, done: string) => {
    if (await orSay(work)) say(done);
    await Promise.all([again(), loadMe()]);
  };
  const made = value?.items.filter(({ id }) => known?.projects.some((project) => project.id === id));
  return (
    <>
      <h2 className="mb-1 font-medium">Projects of {known?.tenant}</h2>
      <Problem text={error} />
      {made && (
        <Table label="Projects" head={["Name", "Id", "Sessions", ""]}>
          {made.map((project) => (
            <tr key={project.id} data-project={project.name}>
              <Cell>{project.name}</Cell>
              <Cell>
                <code className="text-xs">{project.id}</code>
              </Cell>
              <Cell>{project.sessions ?? ""}</Cell>
              <Cell>
                {project.name !== "default" && (
                  <Remove
                    what={project.name}
                    onRemove={() => void change(api.removeProject(project.id), "It is gone.")}
                  />
                )}
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      <NewName
        what="project"
        onMake={(name) => change(api.makeProject(name), `The project ${name} is made.`)}
        needs="tenant"
      />
      {isServer && <Tenants />}
    </>
  );
}

function Tenants() {
  const { value, error, again } = useLoaded(api.tenants);
  const change = async (work: Promise<unknown>, done: string) => {
    if (await orSay(work)) say(done);
    await again();
  };
  return (
    <section className="mt-6" aria-label="Tenants">
      <h2 className="mb-1 font-medium">Tenants</h2>
      <p className="mb-2 text-dim">
        A tenant is a team that sees nothing of others. Make its first key with{" "}
        <code>ostler --project TENANT/default keys create</code>.
      </p>
      <Problem text={error} />
      {value && (
        <Table label="List of tenants" head={["Name", "Since", ""]}>
          {value.items.map(({ name, createdAt }) => (
            <tr key={name} data-tenant={name}>
              <Cell>{name}</Cell>
              <Cell>{name === "default" ? "always" : moment(createdAt)}</Cell>
              <Cell>
                {name !== "default" && (
                  <Remove what={name} onRemove={() => void change(api.removeTenant(name), `${name} is gone.`)} />
                )}
              </Cell>
            </tr>
          ))}
        </Table>
      )}
      <NewName
        what="tenant"
        onMake={(name) => change(api.makeTenant(name), `The tenant ${name} is made.`)}
        needs="server"
      />
    </section>
  );
}

function Remove({ what, onRemove }: { what: string; onRemove(): void }) {
  const [asking, setAsking] = useState(false);
  return (
    <>
      <button
        type="button"
        className="btn btn-bare text-bad"
        data-needs="tenant"
        aria-label={`Remove ${what}`}
        onClick={() => setAsking(true)}
      >
        Remove
      </button>
      {asking && (
        <Confirm
          title={`Remove ${what}?`}
          text="Only what is empty is removed; what still lives there is named otherwise."
          verb="Remove"
          onClose={() => setAsking(false)}
          onConfirm={onRemove}
        />
      )}
    </>
  );
}

function NewName({ what, onMake, needs }: { what: string; onMake(name: string): Promise<void>; needs: string }) {
  const [name, setName] = useState("");
  return (
    <form
      className="mt-2 flex max-w-md gap-2"
      data-needs={needs}
      onSubmit={(event) => (event.preventDefault(), void onMake(name.trim()), setName(""))}
    >
      <input
        className="field"
        required
        maxLength={63}
        pattern="[a-z0-9][a-z0-9\-]*"
        title="Lower-case letters, digits and -"
        aria-label={`Name of the new ${what}`}
        placeholder={`Name of a new ${what}`}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <button type="submit" className="btn">
        Make the {what}
      </button>
    </form>
  );
}
