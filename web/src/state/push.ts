// Notifications of this browser by its push service: the server tells them also when no page is open.
import { api } from "../api/client";
import { createStore } from "./store";

const KEY = "ostler.push";
const EVENTS = ["turn.ended", "permission.requested", "question.requested"];

/** The webhook of the server that tells this browser. */
export const pushed = createStore<string | undefined>(localStorage.getItem(KEY) ?? undefined);

function keep(webhook: string | undefined): void {
  pushed.set(webhook);
  if (webhook) localStorage.setItem(KEY, webhook);
  else localStorage.removeItem(KEY);
}

/** Whether the browser has what it takes; a push service of its own may still be missing. */
export function canPush(): boolean {
  return window.isSecureContext && "serviceWorker" in navigator && "PushManager" in window;
}

/** Without a push service, or a role that may make webhooks, the open page goes on to notify. */
export async function startPush(): Promise<void> {
  const { pushManager } = await navigator.serviceWorker.ready;
  const webhook = await api.newWebhook({ url: "push:", events: EVENTS });
  try {
    await (await pushManager.getSubscription())?.unsubscribe(); // it may be of an earlier key
    const wanted = { userVisibleOnly: true, applicationServerKey: webhook.pushKey };
    const { endpoint, keys } = (await pushManager.subscribe(wanted)).toJSON();
    const push = { p256dh: keys!.p256dh!, auth: keys!.auth! };
    await api.editWebhook(webhook.id, { url: endpoint, push, paused: false });
    keep(webhook.id);
  } catch (error) {
    await api.removeWebhook(webhook.id);
    throw error;
  }
}

export async function stopPush(): Promise<void> {
  const webhook = pushed.get();
  keep(undefined);
  const worker = await navigator.serviceWorker.getRegistration();
  await (await worker?.pushManager.getSubscription())?.unsubscribe();
  if (webhook) await api.removeWebhook(webhook).catch(() => undefined);
}

/** What the push service or somebody ended is begun anew. */
export async function checkPush(): Promise<void> {
  const webhook = pushed.get();
  if (!webhook) return;
  try {
    if (!(await api.webhook(webhook)).disabled) return;
    await stopPush();
  } catch (error) {
    if ((error as { status?: number }).status !== 404) return;
    keep(undefined);
  }
  await startPush().catch(() => undefined);
}
