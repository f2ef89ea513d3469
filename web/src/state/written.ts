// What was begun to write and not sent, by session: kept in this browser until it is sent.

const KEY = "ostler.drafts";
const MOST = 50;

function all(): Record<string, string> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return found && typeof found === "object" ? (found as Record<string, string>) : {};
  } catch {
    return {};
  }
}

export function writtenFor(session: string): string {
  const text = all()[session];
  return typeof text === "string" ? text : "";
}

export function keepWritten(session: string, text: string): void {
  const { [session]: _, ...others } = all();
  const entries = Object.entries(others).slice(text ? 1 - MOST : -MOST);
  if (text) entries.push([session, text]);
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(entries)));
  } catch {
    // The browser has no room; the text is still in the field.
  }
}
