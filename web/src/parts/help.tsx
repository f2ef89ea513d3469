// The keys.
import { keepSingleKeys, singleKeys } from "../state/keys";
import { useStore } from "../state/store";
import { Dialog } from "./dialog";

const KEYS: [string, [string, string][]][] = [
  [
    "Everywhere",
    [
      ["Ctrl K", "Commands and sessions"],
      ["n", "New session"],
      ["g", "All sessions"],
      ["i", "Inbox"],
      ["u", "The next that waits or is not seen"],
      ["/", "Search"],
      ["[  ]", "Previous and next open session"],
      ["?", "This help"],
    ],
  ],
  [
    "In the list",
    [
      ["j  k", "Down and up"],
      ["Enter", "Open"],
    ],
  ],
  [
    "In a session",
    [
      ["m", "Write a message"],
      ["Enter", "Send, or queue while the agent works"],
      ["Ctrl Enter", "Steer the turn under way"],
      ["Esc Esc", "Interrupt the turn"],
      ["p", "Side panel"],
    ],
  ],
  [
    "In a review",
    [
      ["↑  ↓", "Choose a line, with Shift several"],
      ["c", "Comment on it"],
      ["v", "The file is viewed"],
      ["Esc", "Choose nothing, then back to the session"],
    ],
  ],
  [
    "When something waits",
    [
      ["a", "Allow once"],
      ["A", "Allow for this session"],
      ["r", "Reject"],
      ["1 to 9", "Choose an answer"],
      ["Enter", "Send the answer"],
    ],
  ],
];

export default function Help({ onClose }: { onClose(): void }) {
  const single = useStore(singleKeys);
  return (
    <Dialog label="Keyboard" onClose={onClose} className="w-[42rem]">
      <div className="grid gap-5 sm:grid-cols-2">
        {KEYS.map(([title, keys]) => (
          <section key={title}>
            <h3 className="mb-1 text-2xs font-medium text-dim">{title}</h3>
            <dl className="space-y-1">
              {keys.map(([key, what]) => (
                <div key={what} className="flex items-baseline gap-2">
                  <dt className="w-20 shrink-0">
                    <kbd className="kbd">{key}</kbd>
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <label className="mt-4 flex min-h-10 items-center gap-2">
        <input type="checkbox" checked={single} onChange={(event) => keepSingleKeys(event.target.checked)} />
        Single keys are shortcuts; Ctrl K, Enter and Esc always are
      </label>
    </Dialog>
  );
}
