// What a person wrote in a message, without what was attached.
import type { Item } from "../api/types";

export function textOf(item: Item): string {
  return item.content
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("\n")
    .trim();
}
