// Prompts that the people of the project saved: read when somebody looks for one, and the dialog that is open.
import { api } from "../api/client";
import type { SavedPrompt } from "../api/types";
import { createStore } from "./store";

export const prompts = createStore<readonly SavedPrompt[]>([]);

export async function loadPrompts(): Promise<void> {
  prompts.set(await api.prompts());
}

/** The dialog that is open: all of them, or one to save or change. */
export type OpenedPrompts = { what: "all" } | { what: "save"; text: string } | { what: "edit"; prompt: SavedPrompt };
export const openedPrompts = createStore<OpenedPrompts | undefined>(undefined);

/** Stands in a text for what is given when it is used. */
const ARGUMENTS = "$ARGUMENTS";

/** What is selected once a prompt is in the field: its first place to fill, or nothing at its end. */
export function placeIn(text: string): [number, number] {
  const at = text.indexOf(ARGUMENTS);
  return at < 0 ? [text.length, text.length] : [at, at + ARGUMENTS.length];
}

/** The text with what was given in its places, or below it if it has none. */
export function filled(text: string, given: string): string {
  if (text.includes(ARGUMENTS)) return text.replaceAll(ARGUMENTS, () => given);
  return given ? `${text}\n\n${given}` : text;
}

/** What is sent for a message like "/review the parser" that means a saved prompt. */
export function expanded(text: string, all: readonly SavedPrompt[]): string {
  const found = /^\/(\S+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const prompt = found && all.find(({ name }) => name === found[1]);
  return prompt ? filled(prompt.text, found[2]?.trim() ?? "") : text;
}

/** A name for a text: its first words, as a name may be. */
export function nameFor(text: string): string {
  const plain = text.replaceAll(ARGUMENTS, " ").normalize("NFKD").toLowerCase();
  return (plain.match(/[a-z0-9]+/g) ?? []).slice(0, 3).join("-").slice(0, 64);
}
