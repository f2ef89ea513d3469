// What the pages of settings share: reading something and again after a change, and a table that fits a phone.
import { useCallback, useEffect, useState, type ReactNode } from "react";
import { messageOf } from "../api/client";

export interface Loaded<T> {
  value?: T;
  error?: string;
  again(): Promise<void>;
}

/** Read once, and whenever `again` is called; `key` says when it is another question. */
export function useLoaded<T>(read: () => Promise<T>, key = ""): Loaded<T> {
  const [state, setState] = useState<{ key: string; value?: T; error?: string }>({ key });
  const again = useCallback(
    () =>
      read().then(
        (value) => setState({ key, value }),
        (failure: unknown) => setState({ key, error: messageOf(failure) }),
      ),
    [key], // what is read changes with its key alone
  );
  useEffect(() => void again(), [again]);
  return { ...(state.key === key ? state : {}), again };
}

export function Problem({ text }: { text?: string }) {
  return text ? (
    <p role="alert" className="mb-3 rounded-md bg-bad-soft px-3 py-2 text-bad">
      {text}
    </p>
  ) : null;
}

/** A table that is scrolled by itself where the page is narrow. */
export function Table({ label, head, children }: { label: string; head: string[]; children: ReactNode }) {
  return (
    <div className="card overflow-x-auto" role="region" aria-label={label} tabIndex={0}>
      <table className="w-full text-left">
        <thead className="text-2xs text-dim">
          <tr>
            {head.map((text) => (
              <th key={text} scope="col" className="px-3 py-1.5 font-medium whitespace-nowrap">
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line border-t border-line">{children}</tbody>
      </table>
    </div>
  );
}

export function Cell({ children, title }: { children?: ReactNode; title?: string }) {
  return (
    <td className="px-3 py-1.5 align-top" title={title}>
      {children}
    </td>
  );
}
