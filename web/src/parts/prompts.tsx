// Saved prompts: all of them, one to save or change, and the question before one is removed.
import { Pencil, Plus, Trash2 } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { api, messageOf } from "../api/client";
import type { SavedPrompt } from "../api/types";
import { loadPrompts, nameFor, openedPrompts, prompts } from "../state/prompts";
import { useStore } from "../state/store";
import { Field } from "./agent_fields";
import { Confirm, Dialog } from "./dialog";
import { orSay, say } from "./toasts";

export default function PromptDialogs() {
  const opened = useStore(openedPrompts);
  const [isNested, setIsNested] = useState(false);
  useEffect(() => void orSay(loadPrompts()), []);
  if (!opened) return null;
  const close = () => openedPrompts.set(undefined);
  const back = () => (isNested ? openedPrompts.set({ what: "all" }) : close());
  switch (opened.what) {
    case "all":
      return <All onClose={close} onOpen={() => setIsNested(true)} />;
    case "save":
      return <Form key="new" text={opened.text} onDone={back} />;
    case "edit":
      return <Form key={opened.prompt.name} prompt={opened.prompt} text={opened.prompt.text} onDone={back} />;
  }
}

function All({ onClose, onOpen }: { onClose(): void; onOpen(): void }) {
  const all = useStore(prompts);
  const [doomed, setDoomed] = useState<SavedPrompt>();
  const first = useFocus<HTMLButtonElement>();
  const remove = async ({ name }: SavedPrompt) => {
    if (await orSay(api.removePrompt(name))) say(`/${name} is gone.`);
    await orSay(loadPrompts());
  };
  if (doomed)
    return (
      <Confirm
        title={`Remove /${doomed.name}?`}
        text="Nobody in the project can use it then."
        verb="Remove"
        onConfirm={() => void remove(doomed)}
        onClose={() => setDoomed(undefined)}
      />
    );
  return (
    <Dialog label="Saved prompts" onClose={onClose} className="w-[36rem]">
      {all.length === 0 && (
        <p className="text-dim">
          None yet. Save what you send again and again, and write <code>/</code> and its name to use it.
        </p>
      )}
      <ul className="max-h-[50dvh] divide-y divide-line overflow-auto" aria-label="Saved prompts">
        {all.map((prompt) => (
          <li key={prompt.name} className="flex items-center gap-2 py-1">
            <span className="min-w-0 flex-1">
              <span className="block truncate font-medium">/{prompt.name}</span>
              <span className="block truncate text-2xs text-dim">{prompt.description ?? prompt.text}</span>
            </span>
            <button
              data-needs="operator"
              type="button"
              className="btn btn-bare px-2"
              aria-label={`Change /${prompt.name}`}
              title="Change"
              onClick={() => (onOpen(), openedPrompts.set({ what: "edit", prompt }))}
            >
              <Pencil size={14} />
            </button>
            <button
              data-needs="operator"
              type="button"
              className="btn btn-bare px-2 text-bad"
              aria-label={`Remove /${prompt.name}`}
              title="Remove"
              onClick={() => setDoomed(prompt)}
            >
              <Trash2 size={14} />
            </button>
          </li>
        ))}
      </ul>
      <div className="mt-4 flex justify-end">
        <button
          data-needs="operator"
          ref={first}
          type="button"
          className="btn"
          onClick={() => (onOpen(), openedPrompts.set({ what: "save", text: "" }))}
        >
          <Plus size={14} aria-hidden /> New prompt
        </button>
      </div>
    </Dialog>
  );
}

function Form({ prompt, text: begun, onDone }: { prompt?: SavedPrompt; text: string; onDone(): void }) {
  const [name, setName] = useState(prompt?.name ?? nameFor(begun));
  const [description, setDescription] = useState(prompt?.description ?? "");
  const [text, setText] = useState(begun);
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const first = useFocus<HTMLInputElement>();
  const save = async () => {
    if (busy) return;
    setBusy(true);
    const body = { name: name.trim(), text, description };
    try {
      const saved = await (prompt ? api.editPrompt(prompt.name, body) : api.savePrompt(body));
      say(`Saved. Write /${saved.name} to use it.`);
      await orSay(loadPrompts());
      onDone();
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog label={prompt ? `Change /${prompt.name}` : "Save as prompt"} onClose={onDone} className="w-[36rem]">
      <form
        className="space-y-3"
        onSubmit={(event) => (event.preventDefault(), void save())}
        onKeyDown={(event) =>
          event.key === "Enter" && (event.ctrlKey || event.metaKey) && (event.preventDefault(), void save())
        }
      >
        <Field label="Name" hint="Lower-case letters, digits and ._- ; it is written after a slash.">
          <input
            ref={first}
            required
            maxLength={64}
            className="field"
            autoCapitalize="off"
            spellCheck={false}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Field label="Description">
          <input
            className="field"
            maxLength={200}
            placeholder="One line for whoever looks for it"
            value={description}
            onChange={(event) => setDescription(event.target.value)}
          />
        </Field>
        <Field label="Text" hint="$ARGUMENTS stands for what is given when it is used.">
          <textarea
            required
            rows={8}
            maxLength={20_000}
            className="field text-[14px]"
            value={text}
            onChange={(event) => setText(event.target.value)}
          />
        </Field>
        {problem && (
          <p role="alert" className="rounded-md bg-bad-soft px-3 py-2 text-bad">
            {problem}
          </p>
        )}
        <div className="flex justify-end gap-2">
          <button type="button" className="btn" onClick={onDone}>
            Back
          </button>
          <button type="submit" className="btn btn-main" disabled={busy || !name.trim() || !text.trim()}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** Has the focus as soon as its dialog is open, which is after it is drawn. */
function useFocus<T extends HTMLElement>() {
  const element = useRef<T>(null);
  useEffect(() => {
    const timer = setTimeout(() => element.current?.focus());
    return () => clearTimeout(timer);
  }, []);
  return element;
}
