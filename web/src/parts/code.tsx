// Code with a copy button; colours arrive when the highlighter is loaded.
import { Check, Copy } from "lucide-react";
import { memo, useEffect, useState } from "react";

const LONGEST_COLOURED = 40_000;

export const Code = memo(function Code({ text, language, bare }: { text: string; language?: string; bare?: boolean }) {
  const html = useHighlighted(text, language);
  return (
    <div className={`group relative ${bare ? "" : "rounded-md border border-line bg-sunken"}`}>
      <pre
        className="code max-h-[32rem] overflow-auto px-3 py-2"
        tabIndex={0}
        aria-label={language ? `${language} code` : "Code"}
      >
        {html === undefined ? <code>{text}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />}
      </pre>
      <CopyButton
        text={text}
        className="absolute top-1 right-1 opacity-0 group-hover:opacity-100 focus-visible:opacity-100"
      />
    </div>
  );
});

function useHighlighted(text: string, language?: string): string | undefined {
  const [html, setHtml] = useState<{ text: string; html?: string }>();
  const name = language?.trim().split(/\s/)[0]?.toLowerCase();
  useEffect(() => {
    if (!name || text.length > LONGEST_COLOURED) return;
    let isCurrent = true;
    void import("./highlight").then(({ highlight }) => isCurrent && setHtml({ text, html: highlight(text, name) }));
    return () => {
      isCurrent = false;
    };
  }, [text, name]);
  return html?.text === text ? html.html : undefined;
}

export function CopyButton({
  text,
  label = "Copy",
  className = "",
}: {
  text: string;
  label?: string;
  className?: string;
}) {
  const [done, setDone] = useState(false);
  const copy = () => {
    void navigator.clipboard?.writeText(text).then(() => {
      setDone(true);
      setTimeout(() => setDone(false), 1500);
    });
  };
  return (
    <button
      type="button"
      className={`btn btn-bare px-1 py-1 text-dim ${className}`}
      aria-label={done ? "Copied" : label}
      title={label}
      onClick={copy}
    >
      {done ? <Check size={13} /> : <Copy size={13} />}
    </button>
  );
}

const BY_ENDING: Record<string, string> = {
  py: "python",
  rs: "rust",
  ts: "typescript",
  tsx: "typescript",
  js: "typescript",
  jsx: "typescript",
  md: "markdown",
  sh: "bash",
  yml: "yaml",
  yaml: "yaml",
  toml: "ini",
  html: "xml",
  h: "cpp",
  c: "cpp",
  cc: "cpp",
};

export function languageOf(path: string): string | undefined {
  const ending = path.split(".").pop()?.toLowerCase() ?? "";
  return BY_ENDING[ending] ?? ending;
}
