import { BadAnswerError, OstlerError, UnansweredToolError } from "./errors.js";
import type { FollowOptions, Transport } from "./transport.js";
import { Turn } from "./turn.js";
import type {
  Event,
  InputPart,
  Params,
  PermissionAsk,
  PermissionReply,
  PromptReceipt,
  QuestionAsk,
  RawEvent,
  Result,
  SendMessage,
  SessionInfo,
} from "./types.js";

/** A message of the Agent Client Protocol, and who sent it. */
export interface AcpEvent {
  /** Prompts are the client's; everything else is the agent's. */
  sender: "client" | "agent";
  /** The whole message. */
  payload: {
    jsonrpc: "2.0";
    method: "session/update";
    params: { sessionId: string; update: { sessionUpdate: string; [field: string]: unknown } };
  };
  /** The number of the event that it was made of. */
  sequence: number;
}

/** How a prompt is sent. */
export interface PromptOptions {
  /** What becomes of the prompt while the agent works; it waits if nothing is said. */
  whenBusy?: SendMessage["whenBusy"];
  /** Sent again with the same key, the prompt is taken once. */
  idempotencyKey?: string;
}

/** How a prompt is sent, and what happens while its turn goes on. */
export interface RunOptions extends PromptOptions {
  /** Ends the waiting, which then throws; the turn goes on. */
  signal?: AbortSignal;
  /** Every event of this turn. */
  onEvent?: (event: Event) => void;
  /** Decides permissions; without it somebody else has to. */
  onPermission?: (ask: PermissionAsk) => PermissionReply | Promise<PermissionReply>;
  /** Answers questions with the labels chosen for each, or null to decline; without it somebody else has to. */
  onQuestion?: (ask: QuestionAsk) => string[][] | null | Promise<string[][] | null>;
  /**
   * The functions behind the session's `clientTools`, by their names: each takes the input and gives a text, or what
   * JSON can say. The agent hears what one throws; a call without a function throws `UnansweredToolError`.
   */
  tools?: Record<string, (input: Record<string, unknown>) => unknown>;
}

/** Where a listener begins, and who hears of its end. */
export interface ListenOptions extends Omit<FollowOptions, "signal"> {
  /** Why no more events come, also if the listener threw that; without it the console is told. */
  onError?: (error: unknown) => void;
}

/** What can follow the id of the session in the parameters of an operation. */
type Rest<Id extends Parameters<Transport["call"]>[0]> = Omit<Params<Id>, "session">;

/** One session; `info` is the newest state that this handle has seen. */
export class Session {
  /** What is known of it; `refresh` asks anew. */
  info: SessionInfo;
  readonly #transport: Transport;
  /** Up to where the log is known to hold nothing of a turn to come. */
  #seen: number;

  /** `client.sessions.create` and `client.sessions.open` make one. */
  constructor(transport: Transport, info: SessionInfo) {
    this.#transport = transport;
    this.info = info;
    this.#seen = info.lastSequence;
  }

  /** Its id, which the server chose. */
  get id(): string {
    return this.info.id;
  }

  /** The id that its client chose. */
  get key(): string {
    return this.info.key;
  }

  /** Send a prompt, and do not wait for its turn. */
  prompt(input: string | readonly InputPart[], options: PromptOptions = {}): Promise<PromptReceipt> {
    const { whenBusy, idempotencyKey } = options;
    const body: SendMessage = typeof input === "string" ? { message: input } : { parts: [...input] };
    if (whenBusy) body.whenBusy = whenBusy;
    return this.#transport.call("sessions.send", { session: this.id, body }, idempotencyKey ? { idempotencyKey } : {});
  }

  /** Send a prompt and wait until its turn is over. */
  async run(input: string | readonly InputPart[], options: RunOptions = {}): Promise<Turn> {
    options.signal?.throwIfAborted();
    const turn = new Turn(await this.prompt(input, options));
    for await (const event of this.events({ offset: this.#seen, ...signalOf(options) })) {
      if (event.type === "turn.ended") this.#seen = event.sequence;
      for (const own of turn.take(event)) {
        options.onEvent?.(own);
        await this.#decide(own, options).catch(unlessResolved);
      }
      if (turn.outcome) break;
    }
    options.signal?.throwIfAborted();
    return turn;
  }

  async #decide(event: Event, { onPermission, onQuestion, tools }: RunOptions): Promise<void> {
    if (event.type === "permission.requested" && onPermission) {
      await this.reply(event.data.permission_id, await onPermission(event.data));
    } else if (event.type === "question.requested" && event.data.call) {
      await this.#return(event.data, tools?.[event.data.call.name]);
    } else if (event.type === "question.requested" && onQuestion) {
      const answers = await onQuestion(event.data);
      await (answers ? this.answer(event.data.question_id, answers) : this.reject(event.data.question_id));
    }
  }

  async #return(ask: QuestionAsk, handler?: (input: Record<string, unknown>) => unknown): Promise<void> {
    const { name, input } = ask.call!;
    if (!handler) throw new UnansweredToolError(ask.question_id, name);
    let result: unknown;
    try {
      result = (await handler(input)) ?? "";
    } catch (error) {
      await this.reject(ask.question_id, String(error));
      return;
    }
    await this.answerCall(ask.question_id, result);
  }

  /** Every event once, past and future, until the session ends; a lost connection goes on where it was. */
  async *events(options: FollowOptions = {}): AsyncGenerator<Event> {
    const { offset = 0, signal, includeRaw, types } = options;
    let ended = false;
    let last = offset;
    const asked = types && [...new Set([...types, "session.ended"])]; // which says that no more will come
    const path = `/api/v1/sessions/${encodeURIComponent(this.id)}/events/sse`;
    for await (const { data } of this.#transport.follow(
      path,
      queryOf({ includeRaw, types: asked }),
      { offset, signal },
      () => ended,
    )) {
      const event = JSON.parse(data!) as Event;
      if (!types && event.sequence !== last + 1) {
        throw new BadAnswerError(`The log goes on with event ${event.sequence} after ${last}.`);
      }
      last = event.sequence;
      ended = event.type === "session.ended";
      if (!types || types.includes(event.type)) yield event;
    }
  }

  /** `for await (const event of session)`: the same as `events()`. */
  [Symbol.asyncIterator](): AsyncGenerator<Event> {
    return this.events();
  }

  /** Call `listener` for every event, past and future; gives the function that ends it. */
  onEvent(listener: (event: RawEvent) => void, options: ListenOptions = {}): () => void {
    return listen((signal) => this.events({ ...options, signal }), listener, options.onError);
  }

  /** The same as messages of the Agent Client Protocol: each is `{sender, payload}`. */
  onAcpEvent(listener: (event: AcpEvent) => void, options: Omit<ListenOptions, "types"> = {}): () => void {
    return listen((signal) => this.acpEvents({ ...options, signal }), listener, options.onError);
  }

  /** The log as messages of the Agent Client Protocol, until the session ends. */
  async *acpEvents({ offset = 0, signal }: FollowOptions = {}): AsyncGenerator<AcpEvent> {
    const path = `/api/v1/sessions/${encodeURIComponent(this.id)}/events/sse`;
    for await (const { id, data } of this.#transport.follow(
      path,
      { format: "acp" },
      { offset, signal, shared: true },
      ({ event }) => event === "session.ended",
    )) {
      const update = JSON.parse(data!) as AcpEvent["payload"]["params"]["update"];
      const sender = update.sessionUpdate === "user_message_chunk" ? "client" : "agent";
      const params = { sessionId: this.id, update };
      yield { sender, payload: { jsonrpc: "2.0", method: "session/update", params }, sequence: Number(id) };
    }
  }

  /** A page of the log. */
  async getEvents(options: Omit<FollowOptions, "signal"> & { limit?: number } = {}): Promise<RawEvent[]> {
    const page = await this.#transport.call("events.list", { session: this.id, ...queryOf(options) });
    return page.events as RawEvent[];
  }

  /** Decide a permission; the agent reads `message`. */
  reply(permissionId: string, reply: PermissionReply, message?: string): Promise<Result<"asks.permission">> {
    const body = message === undefined ? { reply } : { reply, message };
    return this.#transport.call("asks.permission", { session: this.id, permission_id: permissionId, body });
  }

  /** Answer a question with the labels chosen for each of its parts. */
  answer(questionId: string, answers: string[][]): Promise<Result<"asks.answer">> {
    return this.#transport.call("asks.answer", { session: this.id, question_id: questionId, body: { answers } });
  }

  /** Give the result of a call of a client's tool; if it failed, `reject` says why. */
  answerCall(questionId: string, result: unknown): Promise<Result<"asks.answer">> {
    return this.#transport.call("asks.answer", { session: this.id, question_id: questionId, body: { result } });
  }

  /** Decline to answer a question; the agent reads `message`. */
  reject(questionId: string, message?: string): Promise<Result<"asks.reject">> {
    const body = message === undefined ? {} : { message };
    return this.#transport.call("asks.reject", { session: this.id, question_id: questionId, body });
  }

  /** Ask how the session is now. */
  async refresh(): Promise<SessionInfo> {
    return (this.info = await this.#transport.call("sessions.get", { session: this.id }));
  }

  /** Interrupt the turn that goes on. */
  interrupt(): Promise<Result<"sessions.interrupt">> {
    return this.#transport.call("sessions.interrupt", { session: this.id });
  }

  /** Stop the agent's program; the session can go on later. */
  async stop(): Promise<SessionInfo> {
    return (this.info = await this.#transport.call("sessions.stop", { session: this.id }));
  }

  /** End the session for good. */
  async cancel(): Promise<SessionInfo> {
    return (this.info = await this.#transport.call("sessions.cancel", { session: this.id }));
  }

  /** Remove the session and its log. */
  delete(): Promise<void> {
    return this.#transport.call("sessions.delete", { session: this.id });
  }

  /** The files of its folder. */
  files(options: Rest<"files.list"> = {}): Promise<Result<"files.list">> {
    return this.#transport.call("files.list", { ...options, session: this.id });
  }

  /** The content of a file of its folder. */
  readFile(path: string): Promise<Uint8Array> {
    return this.#transport.call("files.read", { session: this.id, path });
  }

  /** Write a file of its folder whole. */
  writeFile(path: string, content: BodyInit): Promise<Result<"files.write">> {
    return this.#transport.call("files.write", { session: this.id, path, body: content });
  }

  /** What was changed. */
  diff(options: Rest<"sessions.diff"> = {}): Promise<Result<"sessions.diff">> {
    return this.#transport.call("sessions.diff", { ...options, session: this.id });
  }

  /** Add a comment to lines of a file; `sendComments` gives all of them to the agent. */
  comment(body: Params<"comments.add">["body"]): Promise<Result<"comments.add">> {
    return this.#transport.call("comments.add", { session: this.id, body });
  }

  /** Give the comments to the agent as one prompt. */
  sendComments(body: Params<"comments.send">["body"] = {}): Promise<Result<"comments.send">> {
    return this.#transport.call("comments.send", { session: this.id, body });
  }
}

/** What somebody else has decided meanwhile, or before we looked, needs no answer any more. */
function unlessResolved(error: unknown): void {
  if (!(error instanceof OstlerError && error.code === "ask_resolved")) throw error;
}

function queryOf<T extends { types?: readonly string[] | undefined }>({ types, ...rest }: T) {
  return types ? { ...rest, types: types.join(",") } : rest;
}

function signalOf({ signal }: { signal?: AbortSignal }): { signal?: AbortSignal } {
  return signal ? { signal } : {};
}

function listen<T>(
  follow: (signal: AbortSignal) => AsyncGenerator<T>,
  listener: (event: T) => void,
  onError: (error: unknown) => void = (error) => console.error("No more events come, for want of an onError:", error),
): () => void {
  const over = new AbortController();
  const read = async () => {
    for await (const event of follow(over.signal)) {
      if (over.signal.aborted) return;
      listener(event);
    }
  };
  read().catch(onError);
  return () => over.abort();
}
