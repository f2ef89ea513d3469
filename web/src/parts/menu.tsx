// A small menu, on the phone a sheet from below: arrows move, Escape and a click elsewhere close.
import { Fragment, useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from "react";

export interface MenuEntry {
  label: string;
  hint?: string;
  danger?: boolean;
  disabled?: boolean;
  /** Entries of one group stand together, below its name. */
  group?: string;
  onSelect(): void;
}

interface Props {
  label: string;
  button: ReactNode;
  entries: MenuEntry[];
  className?: string;
  up?: boolean;
}

export function Menu({ label, button, entries, className = "btn btn-bare px-1.5", up }: Props) {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return;
    root.current?.querySelector<HTMLElement>("[role=menuitem]:not(:disabled)")?.focus();
    const outside = (event: PointerEvent) => !root.current?.contains(event.target as Node) && setOpen(false);
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const close = () => {
    setOpen(false);
    opener.current?.focus();
  };
  return (
    <div ref={root} className="relative" onKeyDown={(event) => open && onKey(event, root.current!, close)}>
      <button
        ref={opener}
        type="button"
        className={className}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {button}
      </button>
      {open && (
        <div
          role="menu"
          aria-label={label}
          className={`card sheet absolute right-0 z-30 max-h-[80dvh] min-w-48 overflow-auto p-1 shadow-lg ${up ? "bottom-full mb-1" : "top-full mt-1"}`}
        >
          {entries.map((entry, at) => (
            <Fragment key={entry.label}>
              {entry.group && entry.group !== entries[at - 1]?.group && (
                <p role="presentation" className="mt-1 px-2 pt-1 text-xs text-dim not-first:border-t max-sm:px-4">
                  {entry.group}
                </p>
              )}
              <button
                type="button"
                role="menuitem"
                disabled={entry.disabled}
                className={`flex w-full items-center justify-between gap-4 rounded px-2 py-1 text-left hover:bg-hover focus:bg-hover disabled:opacity-50 max-sm:min-h-11 max-sm:px-4 max-sm:text-[14px] ${entry.danger ? "text-bad" : ""}`}
                onClick={() => (close(), entry.onSelect())}
              >
                {entry.label}
                {entry.hint && <span className="text-xs text-dim">{entry.hint}</span>}
              </button>
            </Fragment>
          ))}
        </div>
      )}
    </div>
  );
}

function onKey(event: KeyboardEvent, root: HTMLElement, close: () => void): void {
  const items = [...root.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)")];
  const at = items.indexOf(document.activeElement as HTMLElement);
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (event.key === "Escape" || event.key === "Tab") close();
  else if (step) items[(at + step + items.length) % items.length]?.focus();
  else return;
  if (event.key !== "Tab") event.preventDefault();
  event.stopPropagation();
}
