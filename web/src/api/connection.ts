// Where the server is and the token for it: kept in this browser, and never in an address that a server sees.
import { createStore } from "../state/store";

export interface Connection {
  /** Empty for the server this page came from. */
  endpoint: string;
  token: string;
  /** The id of the project that was chosen; empty for the one that the token begins with. */
  project?: string;
}

const KEY = "ostler.connection";

function keep(known: Connection): void {
  try {
    localStorage.setItem(KEY, JSON.stringify(known));
  } catch {
    // A browser that keeps nothing still works until it is closed.
  }
}

function remembered(): Connection {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Connection>;
    return { endpoint: found.endpoint ?? "", token: found.token ?? "", project: found.project ?? "" };
  } catch {
    return { endpoint: "", token: "" };
  }
}

export const connection = createStore<Connection>(remembered());

const SIGNED_IN = "ostler.signed-in";

/** Remember whether a cookie says who is here, which no script can see. */
export function noteSignedIn(is: boolean): void {
  try {
    if (is) localStorage.setItem(SIGNED_IN, "yes");
    else localStorage.removeItem(SIGNED_IN);
  } catch {
    // A browser that keeps nothing asks once less.
  }
}

function isConnected({ endpoint, token: known }: Connection, token: string): boolean {
  return endpoint !== "" || (known !== "" ? known !== token : localStorage.getItem(SIGNED_IN) !== null);
}

/** Take a key that came by the code for a phone, and take it out of the address at once, which servers never see. */
export function pair(): void {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!token) return;
  history.replaceState(null, "", location.pathname + location.search);
  const isOther = isConnected(connection.get(), token);
  if (isOther && !confirm("This link has a key. Use it instead of the connection that this browser has?")) return;
  const found = { endpoint: "", token };
  keep(found);
  connection.set(found);
}

export function connectTo(next: Connection): void {
  const clean = {
    endpoint: next.endpoint.trim().replace(/\/+$/, ""),
    token: next.token.trim(),
    project: next.project ?? "",
  };
  if (clean.endpoint === location.origin) clean.endpoint = "";
  keep(clean);
  connection.set(clean);
}

export function headersOf({ token, project }: Connection): Record<string, string> {
  return {
    ...(token ? { authorization: `Bearer ${token}` } : {}),
    ...(project ? { "ostler-project": project } : {}),
  };
}

export function urlOf({ endpoint }: Connection, path: string): string {
  return `${endpoint}/api/v1${path}`;
}
