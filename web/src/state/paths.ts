// Paths that agents write in their answers: which words are files, and where in the page a file is shown.

export interface FilePlace {
  path: string;
  line?: number;
}

/** Endings of what people read as text; others need a folder before the name to be taken for a file. */
const ENDINGS =
  "bash|bat|c|cc|cfg|conf|cpp|cs|css|csv|dart|diff|ex|exs|go|gradle|graphql|h|hpp|html|ini|java|js|json|jsonl|jsx|kt|less|lock|lua|md|mdx|mjs|cjs|mts|patch|php|pl|proto|ps1|py|pyi|r|rb|rs|rst|sass|scala|scss|sh|sql|svelte|svg|swift|tf|toml|ts|tsx|txt|vue|xml|yaml|yml|zig|zsh|png|jpg|jpeg|gif|webp";
const NAME = `(?:\\.{0,2}/|~/)?(?:[\\w@.+-]+/)*[\\w@.+-]*\\w\\.(?:${ENDINGS})`;
const LINE = "(?::(\\d+)(?::\\d+|-\\d+)?|#L(\\d+)(?:-L?\\d+)?)";
const WHOLE = new RegExp(`^(${NAME})${LINE}?$`, "i");
const FOLDERED = new RegExp(`^((?:\\.{0,2}/|~/)?(?:[\\w@.+-]+/)+[\\w@.+-]*\\w\\.\\w{1,8})${LINE}?$`);
/** In running text a bare name is a word, so that only a folder or a line makes it a file. */
const INSIDE = new RegExp(`(?<![\\w/:.@-])(${NAME})${LINE}?(?![\\w/-])`, "gi");

/** The file that a word in code letters names, if it is one. */
export function fileOf(text: string): FilePlace | undefined {
  const found = WHOLE.exec(text) ?? FOLDERED.exec(text);
  return found ? placeFrom(found) : undefined;
}

/** The file that the address of a link names; nothing for addresses of the web and places within the page. */
export function fileOfLink(href: string): FilePlace | undefined {
  if (!href || /^(#|\/\/)/.test(href)) return undefined;
  const local = href.replace(/^file:\/\/(localhost)?(?=\/)/, "");
  const found = /^(.*?)(?::(\d+)(?::\d+|-\d+)?|#L?(\d+)(?:-L?\d+)?|[?#].*)?$/i.exec(local);
  if (!found?.[1] || /^[a-z][a-z0-9+.-]*:/i.test(found[1])) return undefined;
  try {
    found[1] = decodeURIComponent(found[1]);
  } catch {
    // a percent sign of its own
  }
  return placeFrom(found);
}

/** Running text cut into what is a file and what is not. */
export function filesIn(text: string): (string | { text: string; place: FilePlace })[] {
  const pieces: (string | { text: string; place: FilePlace })[] = [];
  let done = 0;
  for (const found of text.matchAll(INSIDE)) {
    if (!found[2] && !found[3] && !found[1]!.includes("/")) continue;
    pieces.push(text.slice(done, found.index), { text: found[0], place: placeFrom(found) });
    done = found.index + found[0].length;
  }
  return [...pieces, text.slice(done)].filter(Boolean);
}

function placeFrom(found: RegExpExecArray | RegExpMatchArray): FilePlace {
  const line = Number(found[2] ?? found[3] ?? 0);
  return { path: found[1]!.replace(/^\.\//, ""), ...(line ? { line } : {}) };
}

/** The address of a file beside its session. */
export function fileHref(session: string, { path, line }: FilePlace): string {
  return `/sessions/${encodeURIComponent(session)}?file=${encodeURIComponent(path)}${line ? `&line=${line}` : ""}`;
}

/** A text without the folder before the paths in it. */
export function shortened(text: string, folder: string | null | undefined): string {
  return folder ? text.replaceAll(`${folder.replace(/\/$/, "")}/`, "") : text;
}

/** A path as one reads it: within the session's folder without that folder. */
export function shortPath(path: string, ...folders: (string | null | undefined)[]): string {
  const inside = folders.find((folder) => folder && path.startsWith(`${folder.replace(/\/$/, "")}/`));
  return inside ? path.slice(inside.replace(/\/$/, "").length + 1) : path;
}
