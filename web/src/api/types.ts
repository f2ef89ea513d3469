// The wire types of the server, by the names this UI uses. They are generated from schema/openapi.json.
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Event = Schemas["Event"];
export type EventOf<T extends Event["type"]> = Extract<Event, { type: T }>;
export type Session = Schemas["Session"];
export type SessionPage = Schemas["SessionPage"];
export type UpdateSession = Schemas["UpdateSession"];
export type HandoffSession = Schemas["HandoffSession"];
export type CreateSession = Schemas["CreateSession"];
export type PermissionMode = Session["permissionMode"];
export type SessionStatus = Session["status"];
export type Activity = Session["activity"];
export type Agent = Schemas["Agent"];
export type AgentList = Schemas["AgentList"];
export type AgentLogin = Schemas["AgentLogin"];
export type StartLogin = Schemas["StartLogin"];
export type Item = Schemas["Item"];
export type Part = Item["content"][number];
export type Ask = Schemas["AskView"];
export type PermissionData = Schemas["PermissionData"];
export type QuestionData = Schemas["QuestionData"];
export type Question = Schemas["Question"];
export type PlanEntry = Schemas["PlanEntry"];
export type Usage = Schemas["UsageUpdatedData"];
export type QueueEntry = Schemas["QueueEntry"];
export type FileChange = Schemas["FileChangedData"];
export type Turn = Schemas["TurnView"];
export type Problem = Schemas["Problem"];
export type PromptReceipt = Schemas["PromptReceipt"];
export type SendMessage = Schemas["SendMessage"];
export type InputPart = NonNullable<SendMessage["parts"]>[number];
export type WhenBusy = NonNullable<SendMessage["whenBusy"]>;
export type Difference = Schemas["Difference"];
export type Comment = Schemas["CommentView"];
export type AddComment = Schemas["AddComment"];
export type FolderListing = Schemas["FolderListing"];
export type GitRefs = Schemas["GitRefs"];
export type DeliveryPlan = Schemas["DeliveryPlan"];
export type DeliveryMode = DeliveryPlan["mode"];
export type DeliverSession = Schemas["DeliverSession"];
export type Delivered = Schemas["Delivered"];
export type PullRequest = Schemas["PullRequestView"];
export type NewApiKey = Schemas["NewApiKey"];
export type ApiKeyIssued = Schemas["ApiKeyIssued"];
export type UndoTurn = Schemas["UndoTurn"];
export type Undone = Schemas["Undone"];
export type Snapshot = Schemas["SnapshotView"];
export type Version = Schemas["Version"];
export type Conversation = Schemas["Conversation"];
export type ConversationList = Schemas["ConversationList"];
export type ImportConversation = Schemas["ImportConversation"];
export type SavedPrompt = Schemas["SavedPrompt"];
export type SavePrompt = Schemas["SavePrompt"];
export type EditPrompt = Schemas["EditPrompt"];
export type SearchHit = Schemas["SearchHit"];
export type SearchResults = Schemas["SearchResults"];
export type Runner = Schemas["RunnerInfo"];
export type RunnerList = Schemas["RunnerList"];
export type RunnerToken = Schemas["RunnerTokenIssued"];

export interface EventPage {
  events: Event[];
  hasMore: boolean;
  nextOffset: number;
}
