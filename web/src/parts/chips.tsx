// Choices as a row of chips: each says what is chosen, and opens below the row what can be chosen instead.
import { ChevronDown } from "lucide-react";
import { useEffect, useId, useRef, type KeyboardEvent, type ReactNode } from "react";

export interface Chip {
  name: string;
  label: string;
  /** What is chosen. */
  value: string;
  icon?: ReactNode;
  /** What a person should not overlook. */
  isRisky?: boolean;
  panel: ReactNode;
}

interface Props {
  chips: Chip[];
  open?: string;
  onOpen(name: string | undefined): void;
}

export function Chips({ chips, open, onOpen }: Props) {
  const id = useId();
  const root = useRef<HTMLDivElement>(null);
  const panel = useRef<HTMLDivElement>(null);
  const shown = chips.find((chip) => chip.name === open);
  useEffect(() => {
    if (!shown) return;
    panel.current?.querySelector<HTMLElement>("input:checked, input, select, button")?.focus();
    const outside = ({ target }: PointerEvent) => {
      // only a sheet: what stands in the page would move what is being pressed
      const isSheet = panel.current && getComputedStyle(panel.current).position === "fixed";
      if (isSheet && !root.current?.contains(target as Node)) onOpen(undefined);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [shown?.name]);
  const close = () => {
    onOpen(undefined);
    root.current?.querySelector<HTMLElement>(`[data-chip="${open}"]`)?.focus();
  };
  return (
    <div ref={root}>
      <div className="flex flex-wrap gap-1.5">
        {chips.map(({ name, label, value, icon, isRisky }) => (
          <button
            key={name}
            type="button"
            data-chip={name}
            className={`btn max-w-full rounded-full ${isRisky ? "border-warn bg-warn-soft text-warn" : ""}`}
            aria-expanded={name === open}
            aria-controls={name === open ? id : undefined}
            onClick={() => onOpen(name === open ? undefined : name)}
          >
            {icon}
            <span className="sr-only">{label}: </span>
            <span className="max-w-56 truncate">{value}</span>
            <ChevronDown size={12} className="shrink-0 opacity-60" aria-hidden />
          </button>
        ))}
      </div>
      {shown && (
        <div
          ref={panel}
          id={id}
          role="group"
          aria-label={`Choose: ${shown.label.toLowerCase()}`}
          className="sheet mt-2 grid gap-3 overflow-auto rounded-md border border-line bg-panel p-3 max-sm:p-4"
          onKeyDown={(event) => onKey(event, close)}
        >
          {shown.panel}
          <button type="button" className="btn justify-self-end sm:hidden" onClick={close}>
            Done
          </button>
        </div>
      )}
    </div>
  );
}

/** Escape and Enter in a field close what is open; a window above it has its own keys. */
function onKey(event: KeyboardEvent, close: () => void): void {
  if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey) return;
  const isDone = event.key === "Enter" && event.target instanceof HTMLInputElement;
  if (event.key !== "Escape" && !isDone) return;
  event.preventDefault();
  event.stopPropagation();
  close();
}
