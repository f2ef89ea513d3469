// What was said in all sessions that has the words of the search box, asked for when typing pauses.
import { useEffect, useState } from "react";
import { api } from "../api/client";
import type { SearchHit } from "../api/types";

const PAUSE = 250;
const FEWEST = 3;

export interface Said {
  hits: readonly SearchHit[];
  /** The words that the hits are for. */
  text: string;
  before?: number | null;
  isComplete: boolean;
}

const nothing: Said = { hits: [], text: "", isComplete: true };

export function useSaid(text: string, agent: string): { said: Said; more: () => void } {
  const [said, setSaid] = useState(nothing);
  const wanted = text.trim();
  useEffect(() => {
    if (wanted.length < FEWEST) return setSaid(nothing);
    let isOld = false;
    const ask = () =>
      find(wanted, agent).then(
        (found) => isOld || setSaid(found),
        () => isOld || setSaid(nothing), // half a filter, or a server that is away
      );
    const timer = setTimeout(ask, PAUSE);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [wanted, agent]);
  const more = () => {
    if (!said.before) return;
    void find(said.text, agent, said.before).then(
      (found) => setSaid((known) => (known === said ? { ...found, hits: [...known.hits, ...found.hits] } : known)),
      () => undefined,
    );
  };
  return { said, more };
}

async function find(text: string, agent: string, before?: number): Promise<Said> {
  const found = await api.search({ q: text, agent: agent || undefined, before, limit: 20 });
  return { hits: found.items, text, before: found.nextBefore, isComplete: found.isComplete };
}

export interface Piece {
  text: string;
  isMarked: boolean;
}

/** The excerpt in pieces; its marks count characters as people do, not halves of them as JavaScript. */
export function piecesOf(hit: Pick<SearchHit, "excerpt" | "marks">): Piece[] {
  const letters = Array.from(hit.excerpt);
  const pieces: Piece[] = [];
  let last = 0;
  for (const [start, end] of hit.marks as [number, number][]) {
    pieces.push({ text: letters.slice(last, start).join(""), isMarked: false });
    pieces.push({ text: letters.slice(start, end).join(""), isMarked: true });
    last = end;
  }
  pieces.push({ text: letters.slice(last).join(""), isMarked: false });
  return pieces.filter((piece) => piece.text);
}
