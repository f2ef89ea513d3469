// Where the server is and the token for it: kept in this browser, never in an address.
import { createStore } from "../state/store";

export interface Connection {
  /** Empty for the server this page came from. */
  endpoint: string;
  token: string;
}

const KEY = "ostler.connection";

function remembered(): Connection {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "{}") as Partial<Connection>;
    return { endpoint: found.endpoint ?? "", token: found.token ?? "" };
  } catch {
    return { endpoint: "", token: "" };
  }
}

export const connection = createStore<Connection>(remembered());

export function connectTo(next: Connection): void {
  const clean = { endpoint: next.endpoint.trim().replace(/\/+$/, ""), token: next.token.trim() };
  if (clean.endpoint === location.origin) clean.endpoint = "";
  try {
    localStorage.setItem(KEY, JSON.stringify(clean));
  } catch {
    // A browser that keeps nothing still works until it is closed.
  }
  connection.set(clean);
}

export function headersOf({ token }: Connection): Record<string, string> {
  return token ? { authorization: `Bearer ${token}` } : {};
}

export function urlOf({ endpoint }: Connection, path: string): string {
  return `${endpoint}/api/v1${path}`;
}
