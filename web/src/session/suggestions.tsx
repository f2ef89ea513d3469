// What is offered while one writes: files after an @, commands and saved prompts after a / at the beginning.
import { useEffect, useState, type KeyboardEvent, type ReactNode } from "react";

export interface Suggestion {
  id: string;
  label: ReactNode;
  hint: string;
  /** Where it comes from, if there are several such places. */
  source?: string;
  /** What the begun word becomes. */
  text?: string;
  /** What is selected in that text; without it the caret is behind it. */
  select?: [number, number];
  /** Done instead of writing something. */
  run?(): void;
}

export interface Begun {
  kind: "file" | "command";
  query: string;
  start: number;
}

/** What there is for a begun word, and what is said below it or instead of it. */
export interface Offers {
  list?: Suggestion[];
  note?: string;
}

/** The word that is being written at the caret, if it is one that something can be offered for. */
export function begunAt(text: string, caret: number): Begun | undefined {
  const before = text.slice(0, caret);
  const command = /^\/(\S*)$/.exec(before);
  if (command) return { kind: "command", query: command[1]!, start: 0 };
  const file = /(?:^|[\s(])@([^\s@]*)$/.exec(before);
  return file ? { kind: "file", query: file[1]!, start: caret - file[1]!.length - 1 } : undefined;
}

export interface Offer {
  /** What is shown; undefined while nothing is to be offered. */
  list?: Suggestion[];
  /** Said instead of a list. */
  note?: string;
  selected: number;
  choose(suggestion: Suggestion): void;
  point(index: number): void;
  /** Whether the key was meant for the list. */
  onKey(event: KeyboardEvent): boolean;
}

type Write = (text: string, caret: number, end?: number) => void;

/** `useOffers` is the hook that knows what there is; it is the same one in every rendering. */
export function useOffer(
  text: string,
  caret: number,
  write: Write,
  useOffers: (begun: Begun | undefined) => Offers,
): Offer {
  const [at, setAt] = useState(0);
  const [dismissed, setDismissed] = useState<string>();
  const begun = begunAt(text, caret);
  const token = begun && `${begun.kind}:${begun.start}`;
  const isOpen = begun !== undefined && token !== dismissed;
  const { list, note } = useOffers(isOpen ? begun : undefined);
  useEffect(() => setAt(0), [begun?.query, token]);
  useEffect(() => void (token === undefined && setDismissed(undefined)), [token]);

  const choose = (suggestion: Suggestion) => {
    if (!begun) return;
    const rest = text.slice(caret);
    const { start } = begun;
    if (suggestion.run) {
      write(rest, 0);
      suggestion.run();
    } else if (suggestion.select) {
      const [from, to] = suggestion.select;
      write(text.slice(0, start) + suggestion.text + rest, start + from, start + to);
    } else {
      const word = `${suggestion.text} `;
      write(text.slice(0, start) + word + rest.replace(/^ /, ""), start + word.length);
    }
  };
  const selected = Math.min(at, (list?.length ?? 0) - 1);
  const onKey = (event: KeyboardEvent): boolean => {
    if (!isOpen) return false;
    if (event.key === "Escape") setDismissed(token);
    else if (!list?.length) return false;
    else if (event.key === "ArrowDown") setAt((selected + 1) % list.length);
    else if (event.key === "ArrowUp") setAt((selected - 1 + list.length) % list.length);
    else if ((event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey) || event.key === "Tab")
      choose(list[selected]!);
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  };
  return { list, note, selected, choose, point: setAt, onKey };
}

export const LIST_ID = "suggestions";

export function Suggestions({ offer, below = false }: { offer: Offer; below?: boolean }) {
  if (!offer.list && !offer.note) return null;
  return (
    <div
      className={`absolute inset-x-0 z-20 ${below ? "top-full mt-1" : "bottom-full mb-1"} overflow-hidden rounded-md border border-line bg-panel shadow-lg`}
    >
      <ul id={LIST_ID} role="listbox" tabIndex={0} aria-label="Suggestions" className="max-h-[35dvh] overflow-auto p-1">
        {offer.list?.map((one, index) => (
          <li
            key={one.id}
            id={`${LIST_ID}-${index}`}
            role="option"
            aria-selected={index === offer.selected}
            ref={index === offer.selected ? (node) => node?.scrollIntoView({ block: "nearest" }) : undefined}
            className={`flex min-h-8 cursor-pointer items-center gap-3 rounded px-2 py-1 ${index === offer.selected ? "bg-hover" : ""}`}
            onMouseMove={() => offer.point(index)}
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => offer.choose(one)}
          >
            <span className="max-w-[60%] shrink-0 truncate">{one.label}</span>
            <span className="min-w-0 flex-1 truncate text-2xs text-dim">{one.hint}</span>
            {one.source && <span className="chip shrink-0">{one.source}</span>}
          </li>
        ))}
        {offer.list?.length === 0 && !offer.note && <li className="px-2 py-1 text-dim">Nothing matches.</li>}
      </ul>
      {offer.note && (
        <p role="status" className="border-t border-line px-3 py-1 text-2xs text-dim">
          {offer.note}
        </p>
      )}
    </div>
  );
}
