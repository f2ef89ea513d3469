// Markdown of agents: cut into blocks, of which only the last changes while text streams in.
import DOMPurify from "dompurify";
import { Marked, type Token, type Tokens } from "marked";
import { memo, useMemo, type ReactNode } from "react";
import { Code } from "./code";

/** Shows a picture of the session's own files. */
type PictureOf = (path: string, name: string) => ReactNode;

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

export const Markdown = memo(function Markdown({ text, pictureOf }: { text: string; pictureOf: PictureOf }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className="prose-ours">
      {blocks.map((block, index) => {
        const picture = pictureIn(block);
        return picture ? (
          <div key={index}>{pictureOf(picture.path, picture.name)}</div>
        ) : (
          <Block
            key={index}
            type={block.type}
            raw={block.raw}
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
  lang,
  text,
}: {
  type: string;
  raw: string;
  lang?: string;
  text: string;
}) {
  const html = useMemo(
    () => (type === "code" ? "" : DOMPurify.sanitize(marked.parse(raw, { async: false }))),
    [type, raw],
  );
  if (type === "code") return <Code text={text} language={lang} />;
  return <div dangerouslySetInnerHTML={{ __html: html }} />;
});
