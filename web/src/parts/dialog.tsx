// Modal windows by the browser's own dialog: focus stays inside and Escape closes.
import { X } from "lucide-react";
import { useEffect, useRef, type ReactNode } from "react";

interface Props {
  label: string;
  onClose(): void;
  children: ReactNode;
  className?: string;
  bare?: boolean;
}

export function Dialog({ label, onClose, children, className = "w-[32rem]", bare }: Props) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current!;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      aria-label={label}
      className={`card max-h-[85dvh] max-w-[calc(100vw-1.5rem)] overflow-auto p-0 shadow-xl ${className}`}
      onCancel={(event) => (event.preventDefault(), onClose())}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      {bare ? (
        children
      ) : (
        <div className="p-4">
          <div className="mb-3 flex items-center justify-between gap-4">
            <h2 className="text-sm font-semibold">{label}</h2>
            <button type="button" className="btn btn-bare px-1" aria-label="Close" onClick={onClose}>
              <X size={15} />
            </button>
          </div>
          {children}
        </div>
      )}
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  text: string;
  verb: string;
  onConfirm(): void;
  onClose(): void;
}

export function Confirm({ title, text, verb, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog label={title} onClose={onClose} className="w-[26rem]">
      <p className="mb-4 text-dim">{text}</p>
      <div className="flex justify-end gap-2">
        <button type="button" className="btn" onClick={onClose}>
          Keep it
        </button>
        <button type="button" className="btn border-bad text-bad" onClick={() => (onClose(), onConfirm())}>
          {verb}
        </button>
      </div>
    </Dialog>
  );
}
