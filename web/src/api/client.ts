// Calls of the API: one function for each that the UI makes, and one shape for everything that goes wrong.
import { forPage } from "../parts/text";
import { connection, headersOf, urlOf, type Connection } from "./connection";
import type {
  Artifact,
  AddComment,
  Comment,
  Agent,
  ApiKeyIssued,
  ApiKeyList,
  AuditPage,
  LimitsList,
  Limits,
  LimitUsageList,
  Me,
  MemberList,
  NewApiKey,
  ProjectList,
  SetLimits,
  TenantList,
  AgentList,
  AgentLogin,
  Ask,
  ConversationList,
  CreateSession,
  Delivery,
  DeliveryDetails,
  Delivered,
  DeliverSession,
  EditPrompt,
  EditSchedule,
  EditTrigger,
  EditWebhook,
  DeliveryPlan,
  Difference,
  EventPage,
  FolderListing,
  FollowerList,
  GitRefs,
  ImportConversation,
  Problem,
  PushTemplate,
  HandoffSession,
  AppliedChanges,
  ApplyChanges,
  MadeRepository,
  MarkRead,
  NewSchedule,
  NewTrigger,
  NewWebhook,
  Webhook,
  ReadMarks,
  PromptReceipt,
  Runner,
  RunnerList,
  RunnerToken,
  SavePrompt,
  SavedPrompt,
  Schedule,
  ScheduleRun,
  SearchResults,
  UpdateSession,
  SendMessage,
  Session,
  SessionPage,
  StartLogin,
  Snapshot,
  TemplateDifference,
  TemplateFile,
  TemplateRevision,
  Trigger,
  TriggerPreview,
  Turn,
  UndoTurn,
  Undone,
  Version,
  WebhookDelivery,
  WebhookDeliveryDetails,
  Providers,
  SignedOut,
  SignInsEnded,
} from "./types";

/** A refusal of the server, or no answer at all (`status` 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly problem?: Problem,
  ) {
    super(message);
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

type Query = Record<string, string | number | boolean | undefined>;

export async function call<T>(
  method: string,
  path: string,
  {
    body,
    query,
    to = connection.get(),
    signal,
    keepalive,
  }: { body?: unknown; query?: Query; to?: Connection; signal?: AbortSignal; keepalive?: boolean } = {},
): Promise<T> {
  const headers: Record<string, string> = headersOf(to);
  if (body !== undefined) headers["content-type"] = "application/json";
  let answer: Response;
  try {
    answer = await fetch(urlOf(to, path) + search(query), {
      method,
      headers,
      signal,
      keepalive,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, `${to.endpoint || location.origin} does not answer.`);
  }
  if (!answer.ok) throw await refusal(answer);
  if (answer.status === 204) return undefined as T;
  try {
    return (await answer.json()) as T;
  } catch {
    throw notOurs();
  }
}

/** Something answered, but it is not Ostler: a static host, a proxy's page. */
export function notOurs(): ApiError {
  return new ApiError(400, `There is no Ostler server at ${connection.get().endpoint || location.origin}.`);
}

function search(query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}` : "";
}

export async function refusal(answer: Response): Promise<ApiError> {
  try {
    const problem = (await answer.json()) as Problem;
    return new ApiError(answer.status, forPage(problem.detail ?? problem.title), problem);
  } catch {
    return new ApiError(answer.status, `The server answered with status ${answer.status}.`);
  }
}

const id = encodeURIComponent;

function items<T>(path: string): Promise<T[]> {
  return call<{ items: T[] }>("GET", path).then((list) => list.items);
}

export const api = {
  version: (to?: Connection) => call<Version>("GET", "/version", { to }),
  providers: () => call<Providers>("GET", "/providers"),
  signOut: () => call<SignedOut>("POST", "/sign-out"),
  agents: () => call<AgentList>("GET", "/agents"),
  agent: (name: string) => call<Agent>("GET", `/agents/${id(name)}`),
  install: (name: string) => call<{ version?: string | null }>("POST", `/agents/${id(name)}/install`, { body: {} }),
  login: (agent: string) => call<AgentLogin>("GET", `/agents/${id(agent)}/login`),
  logIn: (agent: string, how: StartLogin) => call<AgentLogin>("POST", `/agents/${id(agent)}/login`, { body: how }),
  answerLogin: (agent: string, code: string) =>
    call<AgentLogin>("POST", `/agents/${id(agent)}/login/answer`, { body: { code } }),
  cancelLogin: (agent: string) => call<AgentLogin>("POST", `/agents/${id(agent)}/login/cancel`),
  logOut: (agent: string) => call<void>("DELETE", `/agents/${id(agent)}/login`),
  followers: () => call<FollowerList>("GET", "/followers"),
  runners: () => call<RunnerList>("GET", "/runners"),
  drainRunner: (runner: string) => call<Runner>("POST", `/runners/${id(runner)}/drain`),
  resumeRunner: (runner: string) => call<Runner>("POST", `/runners/${id(runner)}/resume`),
  removeRunner: (runner: string) => call<void>("DELETE", `/runners/${id(runner)}`),
  runnerToken: (labels: Record<string, string>) => call<RunnerToken>("POST", "/runners/tokens", { body: { labels } }),
  folders: (path: string) => call<FolderListing>("GET", "/folders", { query: { path } }),
  refs: (url: string) => call<GitRefs>("GET", "/git/refs", { query: { url } }),
  imports: () => call<ConversationList>("GET", "/imports"),
  bring: (body: ImportConversation) => call<Session>("POST", "/imports", { body }),
  prompts: () => call<{ items: SavedPrompt[] }>("GET", "/prompts").then((list) => list.items),
  savePrompt: (body: SavePrompt) => call<SavedPrompt>("POST", "/prompts", { body }),
  editPrompt: (name: string, body: EditPrompt) => call<SavedPrompt>("PATCH", `/prompts/${id(name)}`, { body }),
  removePrompt: (name: string) => call<void>("DELETE", `/prompts/${id(name)}`),
  me: () => call<Me>("GET", "/me"),
  keys: () => call<ApiKeyList>("GET", "/api-keys"),
  makeKey: (body: NewApiKey) => call<ApiKeyIssued>("POST", "/api-keys", { body }),
  revokeKey: (key: string) => call<void>("DELETE", `/api-keys/${id(key)}`),
  members: () => call<MemberList>("GET", "/members"),
  signOutEverywhere: (actor?: string) => call<SignInsEnded>("POST", "/members/sign-out", { body: { actor } }),
  projects: () => call<ProjectList>("GET", "/projects"),
  makeProject: (name: string) => call<unknown>("POST", "/projects", { body: { name } }),
  removeProject: (project: string) => call<void>("DELETE", `/projects/${id(project)}`),
  tenants: () => call<TenantList>("GET", "/tenants"),
  makeTenant: (name: string) => call<unknown>("POST", "/tenants", { body: { name } }),
  removeTenant: (name: string) => call<void>("DELETE", `/tenants/${id(name)}`),
  limits: () => call<LimitsList>("GET", "/limits"),
  setLimits: (body: SetLimits) => call<Limits>("PUT", "/limits", { body }),
  usage: () => call<LimitUsageList>("GET", "/usage"),
  audit: (query: Query) => call<AuditPage>("GET", "/audit", { query }),
  /** Lines of JSON, the oldest first. */
  auditLines: async (query: Query): Promise<string> => {
    const answer = await fetch(urlOf(connection.get(), "/audit/export") + search(query), {
      headers: headersOf(connection.get()),
    });
    if (!answer.ok) throw await refusal(answer);
    return answer.text();
  },
  search: (query: Query) => call<SearchResults>("GET", "/search", { query }),
  sessions: (query: Query) => call<SessionPage>("GET", "/sessions", { query }),
  session: (session: string, signal?: AbortSignal) => call<Session>("GET", `/sessions/${id(session)}`, { signal }),
  create: (wanted: CreateSession) => call<Session>("POST", "/sessions", { body: wanted }),
  update: (session: string, change: UpdateSession) =>
    call<Session>("PATCH", `/sessions/${id(session)}`, { body: change }),
  handOver: (session: string, wanted: Partial<HandoffSession> & { agent: string }) =>
    call<Session>("POST", `/sessions/${id(session)}/handoff`, { body: wanted }),
  remove: (session: string) => call<void>("DELETE", `/sessions/${id(session)}`),
  act: (session: string, verb: "stop" | "cancel" | "pause" | "resume") =>
    call<Session>("POST", `/sessions/${id(session)}/${verb}`),
  interrupt: (session: string) => call<{ interrupted: boolean }>("POST", `/sessions/${id(session)}/interrupt`),
  send: (session: string, message: Partial<SendMessage>) =>
    call<PromptReceipt>("POST", `/sessions/${id(session)}/messages`, { body: message }),
  unqueue: (session: string, prompt: string) => call<void>("DELETE", `/sessions/${id(session)}/queue/${id(prompt)}`),
  turns: (session: string, signal?: AbortSignal) =>
    call<{ turns: Turn[] }>("GET", `/sessions/${id(session)}/turns`, { signal }).then((list) => list.turns),
  events: (session: string, query: Query, signal?: AbortSignal) =>
    call<EventPage>("GET", `/sessions/${id(session)}/events`, { query, signal }),
  paths: (session: string) =>
    call<{ paths: string[]; truncated: boolean }>("GET", `/sessions/${id(session)}/files/paths`),
  artifacts: (session: string) =>
    call<{ artifacts: Artifact[] }>("GET", `/sessions/${id(session)}/artifacts`).then((list) => list.artifacts),
  wholeFile: async (session: string, path: string): Promise<Blob> => {
    const answer = await fetch(urlOf(connection.get(), `/sessions/${id(session)}/files/content`) + search({ path }), {
      headers: headersOf(connection.get()),
    });
    if (!answer.ok) throw await refusal(answer);
    return answer.blob();
  },
  diff: (session: string, turn?: number) =>
    call<Difference>("GET", `/sessions/${id(session)}/diff`, { query: turn === undefined ? {} : { turn } }),
  comments: (session: string) => call<{ comments: Comment[] }>("GET", `/sessions/${id(session)}/comments`),
  comment: (session: string, wanted: Partial<AddComment>) =>
    call<Comment>("POST", `/sessions/${id(session)}/comments`, { body: wanted }),
  changeComment: (session: string, comment: string, text: string) =>
    call<Comment>("PATCH", `/sessions/${id(session)}/comments/${id(comment)}`, { body: { text } }),
  removeComment: (session: string, comment: string) =>
    call<void>("DELETE", `/sessions/${id(session)}/comments/${id(comment)}`),
  sendComments: (session: string) =>
    call<PromptReceipt>("POST", `/sessions/${id(session)}/comments/send`, { body: {} }),
  patch: async (session: string): Promise<Blob> => {
    const answer = await fetch(urlOf(connection.get(), `/sessions/${id(session)}/patch`), {
      headers: headersOf(connection.get()),
    });
    if (!answer.ok) throw await refusal(answer);
    return answer.blob();
  },
  /** The beginning of a file; `size` is that of the whole. */
  file: async (
    session: string,
    path: string,
    most: number,
    signal: AbortSignal,
  ): Promise<{ data: ArrayBuffer; size: number }> => {
    const answer = await fetch(urlOf(connection.get(), `/sessions/${id(session)}/files/content`) + search({ path }), {
      headers: { ...headersOf(connection.get()), range: `bytes=0-${most - 1}` },
      signal,
    });
    if (answer.status === 416) return { data: new ArrayBuffer(0), size: 0 };
    if (!answer.ok) throw await refusal(answer);
    const data = await answer.arrayBuffer();
    return { data, size: Number(/\/(\d+)$/.exec(answer.headers.get("content-range") ?? "")?.[1] ?? data.byteLength) };
  },
  picture: async (session: string, path: string, signal: AbortSignal): Promise<Blob> => {
    const answer = await fetch(urlOf(connection.get(), `/sessions/${id(session)}/files/image`) + search({ path }), {
      headers: headersOf(connection.get()),
      signal,
    });
    if (!answer.ok) throw await refusal(answer);
    return answer.blob();
  },
  delivery: (session: string) => call<DeliveryPlan>("GET", `/sessions/${id(session)}/delivery`),
  deliver: (session: string, wanted: DeliverSession) =>
    call<Delivered>("POST", `/sessions/${id(session)}/deliver`, { body: wanted }),
  merge: (session: string) => call<Session>("POST", `/sessions/${id(session)}/merge`),
  goOn: (session: string) => call<Session>("POST", `/sessions/${id(session)}/go-on`),
  restart: (session: string, force: boolean) =>
    call<Session>("POST", `/sessions/${id(session)}/restart`, { body: { force } }),
  snapshots: (session: string) =>
    call<{ snapshots: Snapshot[] }>("GET", `/sessions/${id(session)}/snapshots`).then((list) => list.snapshots),
  restore: (session: string, snapshot: string) =>
    call<Session>("POST", `/sessions/${id(session)}/snapshots/${id(snapshot)}/restore`),
  fork: (session: string, turn?: number) => call<Session>("POST", `/sessions/${id(session)}/fork`, { body: { turn } }),
  rewind: (session: string, turn: number) =>
    call<Session>("POST", `/sessions/${id(session)}/rewind`, { body: { turn } }),
  reads: () => call<ReadMarks>("GET", "/reads"),
  /** Arrives also if the page is closed at once. */
  markRead: (session: string, seen: MarkRead) =>
    call<void>("POST", `/sessions/${id(session)}/read`, { body: seen, keepalive: true }),
  newWebhook: (wanted: NewWebhook) => call<Webhook>("POST", "/webhooks", { body: wanted }),
  apply: (session: string, wanted: ApplyChanges) =>
    call<AppliedChanges>("POST", `/sessions/${id(session)}/apply`, { body: wanted }),
  initGit: (session: string) => call<MadeRepository>("POST", `/sessions/${id(session)}/git`),
  undo: (session: string, wanted: Partial<UndoTurn>) =>
    call<Undone>("POST", `/sessions/${id(session)}/undo`, { body: wanted }),
  asks: () => call<{ items: Ask[] }>("GET", "/asks").then((list) => list.items),
  permit: (session: string, ask: string, reply: "once" | "always" | "reject", message?: string) =>
    call<Ask>("POST", `/sessions/${id(session)}/permissions/${id(ask)}/reply`, { body: { reply, message } }),
  answer: (session: string, ask: string, answers: string[][]) =>
    call<Ask>("POST", `/sessions/${id(session)}/questions/${id(ask)}/reply`, { body: { answers } }),
  decline: (session: string, ask: string, message?: string) =>
    call<Ask>("POST", `/sessions/${id(session)}/questions/${id(ask)}/reject`, { body: { message } }),
  templates: () => items<TemplateRevision>("/templates"),
  templateRevisions: (name: string) => items<TemplateRevision>(`/templates/${id(name)}/revisions`),
  templateFiles: (name: string, revision: string) =>
    call<{ files: TemplateFile[] }>("GET", `/templates/${id(name)}/revisions/${id(revision)}/files`).then(
      (found) => found.files,
    ),
  templateDiff: (name: string, old: string, now: string) =>
    call<TemplateDifference>("GET", `/templates/${id(name)}/diff`, { query: { old, new: now } }),
  pushTemplate: (body: PushTemplate) => call<TemplateRevision>("POST", "/templates", { body }),
  removeTemplate: (name: string) => call<void>("DELETE", `/templates/${id(name)}`),
  beginTask: (body: { template: string; inputs: Record<string, unknown>; title: string; prompt?: string }) =>
    call<{ id: string }>("POST", "/tasks", { body }),
  triggers: () => items<Trigger>("/triggers"),
  trigger: (name: string) => call<Trigger>("GET", `/triggers/${id(name)}`),
  newTrigger: (wanted: NewTrigger) => call<Trigger>("POST", "/triggers", { body: wanted }),
  editTrigger: (name: string, body: EditTrigger) => call<Trigger>("PATCH", `/triggers/${id(name)}`, { body }),
  removeTrigger: (name: string) => call<void>("DELETE", `/triggers/${id(name)}`),
  previewTrigger: (name: string, event: Record<string, unknown>) =>
    call<TriggerPreview>("POST", `/triggers/${id(name)}/preview`, { body: { event } }),
  tryTrigger: (name: string, event: Record<string, unknown>) =>
    call<Delivery>("POST", `/triggers/${id(name)}/test`, { body: { event } }),
  triggerDeliveries: (name: string) => items<Delivery>(`/triggers/${id(name)}/deliveries`),
  triggerDelivery: (name: string, delivery: string) =>
    call<DeliveryDetails>("GET", `/triggers/${id(name)}/deliveries/${id(delivery)}`),
  replayDelivery: (name: string, delivery: string) =>
    call<Delivery>("POST", `/triggers/${id(name)}/deliveries/${id(delivery)}/replay`),
  schedules: () => items<Schedule>("/schedules"),
  schedule: (name: string) => call<Schedule>("GET", `/schedules/${id(name)}`),
  newSchedule: (wanted: NewSchedule) => call<Schedule>("POST", "/schedules", { body: wanted }),
  editSchedule: (name: string, body: EditSchedule) => call<Schedule>("PATCH", `/schedules/${id(name)}`, { body }),
  removeSchedule: (name: string) => call<void>("DELETE", `/schedules/${id(name)}`),
  runSchedule: (name: string) => call<ScheduleRun>("POST", `/schedules/${id(name)}/run`),
  scheduleRuns: (name: string) => items<ScheduleRun>(`/schedules/${id(name)}/runs`),
  webhooks: () => items<Webhook>("/webhooks"),
  webhook: (webhook: string) => call<Webhook>("GET", `/webhooks/${id(webhook)}`),
  editWebhook: (webhook: string, body: EditWebhook) => call<Webhook>("PATCH", `/webhooks/${id(webhook)}`, { body }),
  removeWebhook: (webhook: string) => call<void>("DELETE", `/webhooks/${id(webhook)}`),
  tryWebhook: (webhook: string) => call<WebhookDelivery>("POST", `/webhooks/${id(webhook)}/test`),
  webhookCalls: (webhook: string) => items<WebhookDelivery>(`/webhooks/${id(webhook)}/deliveries`),
  webhookCall: (webhook: string, made: string) =>
    call<WebhookDeliveryDetails>("GET", `/webhooks/${id(webhook)}/deliveries/${id(made)}`),
  replayCall: (webhook: string, made: string) =>
    call<WebhookDelivery>("POST", `/webhooks/${id(webhook)}/deliveries/${id(made)}/replay`),
};
