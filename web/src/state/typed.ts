// What was typed while a page still loaded: it is no shortcut, and it is not lost.

let waiting: { text: string } | undefined;
const LONGEST = 10_000;

/** From now until the page takes it, letters are kept. */
export function collectTyped(): void {
  const mine = { text: "" };
  waiting = mine;
  setTimeout(() => waiting === mine && (waiting = undefined), LONGEST);
}

/** Whether the key was kept. */
export function collected(event: KeyboardEvent): boolean {
  if (!waiting || event.ctrlKey || event.metaKey || event.altKey) return false;
  if (event.key === "Backspace") waiting.text = waiting.text.slice(0, -1);
  else if (event.key === "Enter") waiting.text += "\n";
  else if (event.key.length === 1) waiting.text += event.key;
  else return false;
  return true;
}

export function takeTyped(take: (text: string) => void): void {
  const text = waiting?.text;
  waiting = undefined;
  if (text) take(text);
}
