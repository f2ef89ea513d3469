import { OPERATIONS } from "./operations.js";
import { Session } from "./session.js";
import { type ClientOptions, Transport } from "./transport.js";
import type { Arguments, CallOptions, CreateSession, Event, Nouns, OperationId, RawEvent, Result } from "./types.js";

export { BadAnswerError, ConnectionError, OstlerError, type Problem, UnansweredToolError } from "./errors.js";
export { OPERATIONS } from "./operations.js";
export { type AcpEvent, type ListenOptions, type PromptOptions, type RunOptions, Session } from "./session.js";
export type { ClientOptions, FollowOptions } from "./transport.js";
export { Turn } from "./turn.js";
export type * from "./types.js";

/** Sessions: `create` and `open` give a handle, the rest are the operations as they are. */
export type Sessions = Omit<Nouns["sessions"], "create"> & {
  /** A new session; one whose `key` is there already is opened. */
  create(wanted: CreateSession, options?: CallOptions): Promise<Session>;
  /** A handle on a session that is there, by its id or key. */
  open(session: string, options?: CallOptions): Promise<Session>;
};

/** A server's operations by noun. */
export type Client = Omit<Nouns, "sessions"> & {
  /** Sessions, as handles and as they are. */
  sessions: Sessions;
  /** Any operation by its id. */
  call<Id extends OperationId>(id: Id, ...given: Arguments<Id>): Promise<Result<Id>>;
  /** A page of a session's log. */
  getEvents(session: string, options?: { offset?: number; limit?: number; includeRaw?: boolean }): Promise<RawEvent[]>;
  /** Every event of all sessions, from now on or after a position of this stream. */
  watch(options?: { offset?: number; signal?: AbortSignal }): AsyncGenerator<{ position: number; event: Event }>;
};

/** A client of the server at `baseUrl`; it holds no connection, so it needs no closing. */
export function createClient(options: ClientOptions = {}): Client {
  const transport = new Transport(options);
  const call = transport.call.bind(transport) as (id: string, params?: object, options?: CallOptions) => Promise<any>;
  const nouns: Record<string, Record<string, unknown>> = {};
  for (const id of Object.keys(OPERATIONS)) {
    const [noun, verb] = id.split(".") as [string, string];
    const name = verb.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    (nouns[noun] ??= {})[name] = (params?: object, given?: CallOptions) => call(id, params, given);
  }
  Object.assign(nouns["sessions"]!, {
    create: async (wanted: CreateSession, given?: CallOptions) =>
      new Session(transport, await call("sessions.create", { body: wanted }, given)),
    open: async (session: string, given?: CallOptions) =>
      new Session(transport, await call("sessions.get", { session }, given)),
  });
  return {
    ...nouns,
    call,
    getEvents: async (session: string, wanted = {}) => (await call("events.list", { session, ...wanted })).events,
    async *watch(wanted = {}) {
      for await (const { id, data } of transport.follow("/api/v1/events", {}, wanted)) {
        yield { position: Number(id), event: JSON.parse(data!) as Event };
      }
    },
  } as unknown as Client;
}
