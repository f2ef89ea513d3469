// Comments on files as they stand in the prompt that brought them to the agent.

export interface SentComment {
  path: string;
  /** The lines that it is about, in words. */
  place: string;
  line?: number;
  code?: string;
  text: string;
}

const HEAD =
  /(?:^|\n\n)(?:A comment|\d+ comments) on your changes\. Answer each point; say so if you disagree\.\n\n(?=### )/;
const PLACE = /^(.*?)(?::(\d+(?:-\d+)?)|( \(removed lines? [\d-]+\)))?( \(changed since\))?$/;

/** What a prompt says before its comments, and the comments; nothing if it has none. */
export function commentsIn(prompt: string): { first: string; comments: SentComment[] } | undefined {
  const head = HEAD.exec(prompt);
  if (!head) return undefined;
  const comments = prompt
    .slice(head.index + head[0].length)
    .split(/(?:^|\n\n)### /)
    .filter(Boolean)
    .map(commentOf);
  return { first: prompt.slice(0, head.index), comments };
}

function commentOf(paragraph: string): SentComment {
  const [title = "", ...rest] = paragraph.split("\n\n");
  const [, path = title, numbers, removed, since] = PLACE.exec(title) ?? [];
  const place = numbers
    ? `line${numbers.includes("-") ? "s" : ""} ${numbers.replace("-", "–")}`
    : (removed ?? "").trim();
  const body = rest.join("\n\n");
  const fenced = /^(`{3,})\S*\n([^]*?)\n\1(?:\n\n|$)([^]*)$/.exec(body);
  return {
    path,
    place: [place.replace(/^\(|\)$/g, ""), since && "changed since"].filter(Boolean).join(", "),
    line: numbers ? Number(numbers.split("-")[0]) : undefined,
    code: fenced?.[2],
    text: (fenced ? fenced[3]! : body).trim(),
  };
}
