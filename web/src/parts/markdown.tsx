// Markdown of agents as elements, never as HTML: cut into blocks, of which only the last changes while text streams in.
import { Lexer, type Token, type Tokens } from "marked";
import { Fragment, memo, useMemo, type MouseEvent, type ReactNode } from "react";
import { useLocation } from "wouter";
import { fileOf, fileOfLink, filesIn, type FilePlace } from "../state/paths";
import { Code } from "./code";

/** Shows a picture of the session's own files. */
type PictureOf = (path: string, name: string) => ReactNode;
/** Where in the page a file of the session is shown. */
export type HrefOf = (place: FilePlace) => string;

const OPTIONS = { gfm: true, breaks: true };

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
          <TopBlock key={index} token={block} hrefOf={hrefOf} />
        );
      })}
    </div>
  );
});

export function blocksOf(text: string): Token[] {
  try {
    return Lexer.lex(text, OPTIONS).filter((token) => token.type !== "space" && token.type !== "def");
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

const TopBlock = memo(
  function TopBlock({ token, hrefOf }: { token: Token; hrefOf: HrefOf }) {
    return token.type === "code" ? blockOf(token, hrefOf) : <div>{blockOf(token, hrefOf)}</div>;
  },
  (one, other) =>
    one.token.raw === other.token.raw && one.token.type === other.token.type && one.hrefOf === other.hrefOf,
);

/** Raw HTML is shown as text: nothing that an agent writes becomes an element but what is named here. */
function blockOf(token: Token, hrefOf: HrefOf, isLoose = true): ReactNode {
  switch (token.type) {
    case "code":
      return <Code text={token.text} language={token.lang} />;
    case "heading": {
      const Heading = `h${token.depth}` as "h1";
      return <Heading>{inline(token.tokens, hrefOf)}</Heading>;
    }
    case "paragraph":
      return <p>{inline(token.tokens, hrefOf)}</p>;
    case "blockquote":
      return <blockquote>{blocks(token.tokens, hrefOf)}</blockquote>;
    case "list":
      return <List list={token as Tokens.List} hrefOf={hrefOf} />;
    case "table":
      return <Table table={token as Tokens.Table} hrefOf={hrefOf} />;
    case "hr":
      return <hr />;
    case "text": {
      const inside = inline(token.tokens ?? [token], hrefOf);
      return isLoose ? <p>{inside}</p> : inside;
    }
    case "space":
    case "def":
      return null;
    default:
      return inline([token], hrefOf);
  }
}

function blocks(tokens: readonly Token[] = [], hrefOf: HrefOf, isLoose = true): ReactNode[] {
  return tokens.map((token, index) => <Fragment key={index}>{blockOf(token, hrefOf, isLoose)}</Fragment>);
}

function List({ list, hrefOf }: { list: Tokens.List; hrefOf: HrefOf }) {
  const items = list.items.map((item, index) => <li key={index}>{blocks(item.tokens, hrefOf, item.loose)}</li>);
  return list.ordered ? <ol start={list.start || undefined}>{items}</ol> : <ul>{items}</ul>;
}

function Table({ table, hrefOf }: { table: Tokens.Table; hrefOf: HrefOf }) {
  const cells = (row: Tokens.TableCell[], Cell: "th" | "td") =>
    row.map(({ tokens, align }, index) => (
      <Cell key={index} style={align ? { textAlign: align } : undefined}>
        {inline(tokens, hrefOf)}
      </Cell>
    ));
  return (
    <table>
      <thead>
        <tr>{cells(table.header, "th")}</tr>
      </thead>
      <tbody>
        {table.rows.map((row, index) => (
          <tr key={index}>{cells(row, "td")}</tr>
        ))}
      </tbody>
    </table>
  );
}

/** What stands in a line; paths in its text are links, unless they stand in one. */
function inline(tokens: readonly Token[] = [], hrefOf: HrefOf, isLinked = false): ReactNode[] {
  const nodes: ReactNode[] = [];
  let text = "";
  const flush = () => {
    if (text) nodes.push(isLinked ? text : <Named key={nodes.length} text={text} hrefOf={hrefOf} />);
    text = "";
  };
  for (const token of tokens) {
    const more = wordsOf(token);
    if (more !== undefined) {
      text += more;
      continue;
    }
    flush();
    nodes.push(<Fragment key={nodes.length}>{inlineOf(token, hrefOf, isLinked)}</Fragment>);
  }
  flush();
  return nodes;
}

function inlineOf(token: Token, hrefOf: HrefOf, isLinked: boolean): ReactNode {
  switch (token.type) {
    case "strong":
      return <strong>{inline(token.tokens, hrefOf, isLinked)}</strong>;
    case "em":
      return <em>{inline(token.tokens, hrefOf, isLinked)}</em>;
    case "del":
      return <del>{inline(token.tokens, hrefOf, isLinked)}</del>;
    case "br":
      return <br />;
    case "checkbox":
      return <input type="checkbox" checked={token.checked} disabled readOnly />;
    case "codespan": {
      const place = isLinked ? undefined : fileOf(token.text);
      const code = <code>{token.text}</code>;
      return place ? <FileLink href={hrefOf(place)}>{code}</FileLink> : code;
    }
    case "link":
      return linkTo(token.href, inline(token.tokens, hrefOf, true), hrefOf);
    case "image": // one that is not in the session's folder is a link: opening a session must not call anybody
      return linkTo(token.href, token.text || token.href, hrefOf);
    default:
      return inline("tokens" in token ? token.tokens : [], hrefOf, isLinked);
  }
}

/** A token that is nothing but text. */
function wordsOf(token: Token): string | undefined {
  if (token.type === "text") return token.tokens ? undefined : withoutReferences(token.text);
  return token.type === "escape" || token.type === "html" ? token.text : undefined;
}

let reader: HTMLTextAreaElement | undefined;

/** `&amp;` and its like as the letters that they stand for. */
function withoutReferences(text: string): string {
  return text.replace(/&(#\d+|#x[\da-f]+|[a-z][a-z\d]*);/gi, (reference) => {
    reader ??= document.createElement("textarea");
    reader.innerHTML = reference;
    return reader.value;
  });
}

const LEADS_OUT = /^(https?:|mailto:|tel:|\/\/|#)/i;

function linkTo(href: string, inside: ReactNode, hrefOf: HrefOf): ReactNode {
  const place = fileOfLink(href);
  if (place) return <FileLink href={hrefOf(place)}>{inside}</FileLink>;
  if (!LEADS_OUT.test(href)) return inside;
  return (
    <a href={href} target="_blank" rel="noreferrer noopener">
      {inside}
    </a>
  );
}

function FileLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} data-file="">
      {children}
    </a>
  );
}

function Named({ text, hrefOf }: { text: string; hrefOf: HrefOf }) {
  return filesIn(text).map((piece, index) =>
    typeof piece === "string" ? (
      piece
    ) : (
      <FileLink key={index} href={hrefOf(piece.place)}>
        {piece.text}
      </FileLink>
    ),
  );
}
