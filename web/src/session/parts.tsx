// The parts of a message: text, thoughts, pictures, files, data.
import { Brain, ChevronRight } from "lucide-react";
import { memo, useCallback } from "react";
import type { Part } from "../api/types";
import { Code } from "../parts/code";
import { Diff } from "../parts/diff";
import { Markdown } from "../parts/markdown";
import { fileHref, type FilePlace } from "../state/paths";
import { isPicture } from "../state/tools";
import { useLive, useOpen } from "./context";
import { FileChip, Picture } from "./picture";

const pictureOf = (path: string, name: string) => <Picture path={path} name={name || undefined} />;

export function Parts({
  parts,
  className = "",
  plain = false,
  rowId = "",
  growing = false,
}: {
  parts: readonly Part[];
  className?: string;
  plain?: boolean;
  rowId?: string;
  growing?: boolean;
}) {
  return (
    <div className={`flex flex-col gap-2 ${className}`}>
      {parts.map((part, index) => (
        <PartView
          key={index}
          part={part}
          plain={plain}
          id={`${rowId}.${index}`}
          growing={growing && index === parts.length - 1}
        />
      ))}
    </div>
  );
}

const PartView = memo(function PartView({
  part,
  plain,
  id,
  growing,
}: {
  part: Part;
  plain: boolean;
  id: string;
  growing: boolean;
}) {
  switch (part.type) {
    case "text":
      return plain ? <div className="break-words whitespace-pre-wrap">{part.text}</div> : <Said text={part.text} />;
    case "reasoning":
      return <Thought id={id} text={part.text} growing={growing} />;
    case "json":
      return <Code text={JSON.stringify(part.json, null, 2)} language="json" />;
    case "image":
      return <Picture path={part.path} />;
    case "file_ref":
      if (part.diff) return <Diff text={part.diff} label={`Changes of ${part.path}`} />;
      return isPicture(part.path) ? <Picture path={part.path} /> : <FileChip path={part.path} />;
    case "status":
      return (
        <p className="text-dim">
          {part.label}
          {part.detail && `: ${part.detail}`}
        </p>
      );
    case "tool_call":
      return <Code text={`${part.name} ${part.arguments}`} />;
    case "tool_result":
      return <Code text={part.output} />;
    default:
      return <Code text={JSON.stringify(part, null, 2)} language="json" />;
  }
});

/** What was said, with its paths as links. */
export function Said({ text }: { text: string }) {
  const { id } = useLive();
  const hrefOf = useCallback((place: FilePlace) => fileHref(id, place), [id]);
  return <Markdown text={text} pictureOf={pictureOf} hrefOf={hrefOf} />;
}

function Thought({ id, text, growing }: { id: string; text: string; growing: boolean }) {
  const [open, toggle] = useOpen(`thought:${id}`, growing);
  const first = text.trim().split("\n")[0] ?? "";
  return (
    <div className="text-dim">
      <button
        type="button"
        className="flex max-w-full items-center gap-1.5 rounded pr-1 text-left hover:bg-hover"
        aria-expanded={open}
        onClick={toggle}
      >
        <ChevronRight size={13} className={`shrink-0 ${open ? "rotate-90" : ""}`} aria-hidden />
        <Brain size={13} className="shrink-0" aria-hidden />
        <span className="shrink-0">{growing ? "Thinking" : "Thought"}</span>
        {!open && <span className="truncate italic">{first}</span>}
      </button>
      {open && <div className="mt-1 ml-1.5 border-l-2 border-line pl-3.5 break-words whitespace-pre-wrap">{text}</div>}
    </div>
  );
}
