// Markdown of agents: cut into blocks, of which only the last changes while text streams in.
import DOMPurify from "dompurify";
import { Marked, type Token } from "marked";
import { memo, useMemo } from "react";
import { Code } from "./code";

const escaped = (text: string) => text.replace(/[&<>"]/g, (found) => `&#${found.charCodeAt(0)};`);

const marked = new Marked({
  gfm: true,
  breaks: true,
  renderer: {
    // Raw HTML is shown as text, and pictures of other sites as links: opening a session must not call anybody.
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

export const Markdown = memo(function Markdown({ text }: { text: string }) {
  const blocks = useMemo(() => blocksOf(text), [text]);
  return (
    <div className="prose-ours">
      {blocks.map((block, index) => (
        <Block
          key={index}
          type={block.type}
          raw={block.raw}
          lang={block.type === "code" ? block.lang : undefined}
          text={block.type === "code" ? block.text : ""}
        />
      ))}
    </div>
  );
});

function blocksOf(text: string): Token[] {
  try {
    return marked.lexer(text).filter((token) => token.type !== "space" && token.type !== "def");
  } catch {
    return [{ type: "code", raw: text, text }];
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
