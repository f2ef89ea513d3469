// Markdown of agents: cut into blocks, of which only the last changes while text streams in.
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
import { memo, useMemo, type MouseEvent, type ReactNode } from "react";
import { useLocation } from "wouter";
import { fileOf, fileOfLink, filesIn, type FilePlace } from "../state/paths";
import { Code } from "./code";

/** Shows a picture of the session's own files. */
type PictureOf = (path: string, name: string) => ReactNode;
/** Where in the page a file of the session is shown. */
export type HrefOf = (place: FilePlace) => string;

const escaped = (text: string) => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Raw HTML is shown as text, and pictures that are not in the session's folder as links: opening a session must
    // not call anybody.
    html: ({ text }) => escaped(text),
    image: ({ href, text }) => `<a href="${escaped(href)}">${escaped(text || href)}</a>`,
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noreferrer noopener");
  }
});

interface Props {
  text: string;
  pictureOf: PictureOf;
  hrefOf: HrefOf;
}

export const Markdown = memo(function Markdown({ text, pictureOf, hrefOf }: Props) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  const [, go] = useLocation();
  const follow = (event: MouseEvent) => {
    const link = (event.target as Element).closest<HTMLAnchorElement>("a[data-file]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    go(link.getAttribute("href")!);
  };
  return (
    <div className="prose-ours" onClick={follow}>
      {blocks.map((block, index) => {
        const picture = pictureIn(block);
        return picture ? (
          <div key={index}>{pictureOf(picture.path, picture.name)}</div>
        ) : (
          <Block
            key={index}
            type={block.type}
            raw={block.raw}
            hrefOf={hrefOf}
            lang={block.type === "code" ? block.lang : undefined}
            text={block.type === "code" ? block.text : ""}
          />
        );
      })}
    </div>
  );
});

export function blocksOf(text: string): Token[] {
  try {
    return marked.lexer(text).filter((token) => token.type !== "space" && token.type !== "def");
  } catch {
    return [{ type: "code", raw: text, text }];
  }
}

/** The picture that a paragraph consists of, if it is a file and not an address. */
export function pictureIn(block: Token): { path: string; name: string } | undefined {
  const inside = block.type === "paragraph" ? (block as Tokens.Paragraph).tokens : [];
  const [only, ...more] = inside;
  if (only?.type !== "image" || more.length || /^([a-z][a-z0-9+.-]*:|\/\/|#)/i.test(only.href)) return undefined;
  try {
    return { path: decodeURIComponent(only.href), name: only.text };
  } catch {
    return { path: only.href, name: only.text };
  }
}

const Block = memo(function Block({
  type,
  raw,
  hrefOf,
  lang,
  text,
}: {
  type: string;
  raw: string;
  hrefOf: HrefOf;
  lang?: string;
  text: string;
}) {
  const html = useMemo(
    () => (type === "code" ? "" : htmlOf(marked.parse(raw, { async: false }), hrefOf)),
    [type, raw, hrefOf],
  );
  if (type === "code") return <Code text={text} language={lang} />;
  return <div dangerouslySetInnerHTML={{ __html: html }} />;
});

/** What is safe to show, with links to the session's files where a link, a code span or the text names one. */
function htmlOf(unsafe: string, hrefOf: HrefOf): string {
  const root = document.createElement("div");
  root.append(DOMPurify.sanitize(unsafe, { RETURN_DOM_FRAGMENT: true }));
  for (const link of root.querySelectorAll("a")) {
    const place = fileOfLink(link.getAttribute("href") ?? "");
    if (place) pointTo(link, hrefOf(place));
  }
  for (const code of root.querySelectorAll(":not(pre) > code")) {
    const place = code.closest("a") ? undefined : fileOf(code.textContent);
    if (place) wrapped(code, hrefOf(place));
  }
  for (const text of textsOf(root)) {
    const pieces = filesIn(text.data);
    if (pieces.length < 2 && typeof pieces[0] === "string") continue;
    text.replaceWith(
      ...pieces.map((piece) => (typeof piece === "string" ? piece : named(piece.text, hrefOf(piece.place)))),
    );
  }
  return root.innerHTML;
}

function textsOf(root: Element): Text[] {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts: Text[] = [];
  while (walker.nextNode()) {
    const text = walker.currentNode as Text;
    if (!text.parentElement!.closest("a, code, pre")) texts.push(text);
  }
  return texts;
}

function pointTo(link: HTMLAnchorElement, href: string): HTMLAnchorElement {
  link.setAttribute("href", href);
  link.setAttribute("data-file", "");
  link.removeAttribute("target");
  return link;
}

function named(text: string, href: string): HTMLAnchorElement {
  const link = pointTo(document.createElement("a"), href);
  link.textContent = text;
  return link;
}

function wrapped(code: Element, href: string): void {
  const link = pointTo(document.createElement("a"), href);
  code.replaceWith(link);
  link.append(code);
}
