import type { OPERATIONS } from "./operations.js";
import type { components, operations } from "./schema.js";

type Schemas = components["schemas"];
/** Any type of the API by its name. */
export type Schema<Name extends keyof Schemas> = Schemas[Name];

/** Anything that happens in a session; comparing `type` narrows `data`. */
export type Event = Schema<"Event">;
/** What can happen, by its name. */
export type EventType = Event["type"];
/** A session as the server tells of it. */
export type SessionInfo = Schema<"Session">;
/** What a new session may be told. */
export type CreateSession = Schema<"CreateSession">;
/** A prompt as it is sent. */
export type SendMessage = Schema<"SendMessage">;
/** A piece of a prompt: text, or a file of the session. */
export type InputPart = NonNullable<SendMessage["parts"]>[number];
/** What became of a prompt: it has begun a turn, or waits. */
export type PromptReceipt = Schema<"PromptReceipt">;
/** Something that the agent may do only if somebody says so. */
export type PermissionAsk = Schema<"PermissionData">;
/** What can be said to that. */
export type PermissionReply = Schema<"ReplyPermission">["reply"];
/** A question of the agent. */
export type QuestionAsk = Schema<"QuestionData">;
/** Tokens and cost of a turn. */
export type Usage = Schema<"UsageUpdatedData">;
/** An entry of the transcript. */
export type Item = Schema<"Item">;
/** An event with the frame of the agent that it was made of, where there is one. */
export type RawEvent = Event & { raw?: unknown };

/** Every operation of the API. */
export type OperationId = keyof typeof OPERATIONS;

type Of<Id extends OperationId> = Id extends keyof operations ? operations[Id] : never;
type Part<Parameters, Name extends string> = Parameters extends { [Key in Name]?: infer Found }
  ? NonNullable<Found> extends never
    ? unknown
    : NonNullable<Found>
  : unknown;
type Json<Content> = Content extends { content: { "application/json": infer Body } } ? Body : BodyInit;
type BodyOf<Operation> = Operation extends { requestBody: infer Body }
  ? { body: Json<Body> }
  : Operation extends { requestBody?: infer Body }
    ? { body?: [NonNullable<Body>] extends [never] ? BodyInit : Json<NonNullable<Body>> }
    : unknown;

/** What an operation takes: the parameters of its path and of its query side by side, and its body. */
export type Params<Id extends OperationId> =
  Of<Id> extends { parameters: infer Given } ? Part<Given, "path"> & Part<Given, "query"> & BodyOf<Of<Id>> : never;

type Good<Responses> = Responses[keyof Responses & (200 | 201 | 202)];
type Contents<Answer> = Answer extends { content: infer Content } ? Content : never;
type Read<Content> = Content extends { "application/json": infer Body }
  ? Body
  : Content extends { "text/event-stream": unknown }
    ? AsyncGenerator<{ id: string; data: string | undefined }>
    : Content extends { "application/octet-stream": unknown }
      ? Uint8Array
      : string;
type JsonIfAny<Content> =
  Extract<Content, { "application/json": unknown }> extends never
    ? Content
    : Extract<Content, { "application/json": unknown }>;
type Answered<Content> = [Content] extends [never] ? void : Read<JsonIfAny<Content>>;

/** What an operation answers: a document, a stream, bytes, text, or nothing. */
export type Result<Id extends OperationId> =
  Of<Id> extends { responses: infer Responses } ? Answered<Contents<Good<Responses>>> : never;

/** What goes with one call. */
export interface CallOptions {
  /** Ends the waiting for its answer. */
  signal?: AbortSignal;
  /** Sent again with the same name, a request gives the same answer and does nothing twice. */
  idempotencyKey?: string;
  /** Sent with this request. */
  headers?: Record<string, string>;
}

/** What a call of an operation takes; the parameters may be left out where none is needed. */
export type Arguments<Id extends OperationId> =
  Record<never, never> extends Params<Id>
    ? [params?: Params<Id>, options?: CallOptions]
    : [params: Params<Id>, options?: CallOptions];

type Camel<Words extends string> = Words extends `${infer Head}-${infer Rest}`
  ? `${Head}${Capitalize<Camel<Rest>>}`
  : Words;
type Noun<Id> = Id extends `${infer Head}.${string}` ? Head : never;

/** Every operation as a method of its noun: `sessions.go-on` is `sessions.goOn`. */
export type Nouns = {
  [Name in Noun<OperationId>]: {
    [Id in Extract<OperationId, `${Name}.${string}`> as Id extends `${Name}.${infer Verb}` ? Camel<Verb> : never]: (
      ...given: Arguments<Id>
    ) => Promise<Result<Id>>;
  };
};
