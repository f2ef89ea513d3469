// A token for a new runner, and the one command that uses it.
import { useState } from "react";
import { api, messageOf } from "../api/client";
import { connection } from "../api/connection";
import { CopyButton } from "../parts/code";
import { Dialog } from "../parts/dialog";
import { isLoopback, joinCommand, labelsOf } from "../state/runners";

export function AddRunner({ onClose }: { onClose(): void }) {
  const [token, setToken] = useState<string>();
  return (
    <Dialog label="Add a runner" onClose={onClose}>
      {token ? <Command token={token} onClose={onClose} /> : <Ask onToken={setToken} />}
    </Dialog>
  );
}

function Ask({ onToken }: { onToken(token: string): void }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const make = async () => {
    const labels = labelsOf(text);
    if (!labels) return setProblem("Write labels as name=value, with spaces between them.");
    setBusy(true);
    try {
      onToken((await api.runnerToken(labels)).token);
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <form className="space-y-3" onSubmit={(event) => (event.preventDefault(), void make())}>
      <p className="text-dim">
        A runner is another machine with Ostler installed. It dials this server, so it works behind a firewall.
      </p>
      <label className="block">
        <span className="label">Labels</span>
        <input
          className="field font-mono text-xs"
          placeholder="gpu=1 disk=big"
          autoComplete="off"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <span className="mt-1 block text-2xs text-dim">Optional. Sessions can ask for a runner that has them.</span>
      </label>
      {problem && (
        <p role="alert" className="text-bad">
          {problem}
        </p>
      )}
      <div className="flex justify-end">
        <button type="submit" className="btn btn-main" disabled={busy}>
          Make a token
        </button>
      </div>
    </form>
  );
}

function Command({ token, onClose }: { token: string; onClose(): void }) {
  const server = connection.get().endpoint || location.origin;
  const { hostname, protocol } = new URL(server);
  const command = joinCommand(server, token);
  return (
    <div className="space-y-3">
      <p>Run this on the new machine. The token is for one runner, is good for a day, and is shown only now.</p>
      <p className="flex items-start gap-1 rounded bg-sunken px-2 py-1 font-mono text-xs">
        <code className="min-w-0 flex-1 break-all" data-command>
          {command}
        </code>
        <CopyButton text={command} label="Copy the command" />
      </p>
      {isLoopback(hostname) && (
        <p className="text-warn">
          Only this machine reaches {hostname}: put an address in its place that the new machine can reach.
        </p>
      )}
      {!isLoopback(hostname) && protocol === "http:" && (
        <p className="text-warn">
          This is plain http: everybody on the way can read the runner's key. Better use https.
        </p>
      )}
      <p className="text-2xs text-dim">It appears in the list when it is linked.</p>
      <div className="flex justify-end">
        <button type="button" className="btn" onClick={onClose}>
          Done
        </button>
      </div>
    </div>
  );
}
