// The rows of a session, of which only those on the screen exist; follows the end until the person scrolls away.
import { ArrowDown } from "lucide-react";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { Virtualizer, type VirtualizerHandle } from "virtua";
import { entriesOf, placeIn } from "../state/steps";
import { useHead, useLive } from "./context";
import { RowView } from "./rows";
import { Starting } from "./starting";
import { Steps } from "./steps";

const NEAR_END = 24;
const LEAVING = 400;
const UPWARDS = new Set(["ArrowUp", "PageUp", "Home"]);

function useHash(): string {
  return useSyncExternalStore(
    (listener) => {
      addEventListener("hashchange", listener);
      return () => removeEventListener("hashchange", listener);
    },
    () => location.hash,
  );
}

/** What is shown, with steps of one kind as one. */
function useEntries() {
  const live = useLive();
  const order = useHead((head) => head.order);
  return useMemo(() => entriesOf(order, (id) => live.row(id)), [order, live]);
}

export function Timeline() {
  const live = useLive();
  const order = useEntries();
  const hasEarlier = useHead((head) => head.hasEarlier);
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<VirtualizerHandle>(null);
  const following = useRef(true);
  const [away, setAway] = useState(false);
  // Only the person's own hand stops following: cards that load late also move the view.
  const upwards = useRef(0);
  const leave = useCallback(() => {
    upwards.current = performance.now();
    following.current = false;
  }, []);
  const marked = useMarked(list, leave, setAway);

  const toEnd = useCallback(() => {
    const element = box.current;
    if (element && following.current) element.scrollTop = element.scrollHeight;
  }, []);
  useLayoutEffect(toEnd, [order, toEnd]);
  useEffect(() => {
    const observer = new ResizeObserver(toEnd);
    observer.observe(box.current!);
    observer.observe(box.current!.querySelector("[data-rows]")!);
    return () => observer.disconnect();
  }, [toEnd]);

  const settle = () => {
    const element = box.current;
    if (!element) return;
    const isAway = element.scrollHeight - element.scrollTop - element.clientHeight > NEAR_END;
    const isLeaving = performance.now() - upwards.current < LEAVING; // the way up begins at the end
    if (!isAway && !isLeaving) following.current = true;
    setAway(isAway && !following.current);
  };
  const jump = () => {
    following.current = true;
    setAway(false);
    list.current?.scrollToIndex(order.length - 1, { align: "end" });
    toEnd();
  };

  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={box}
        role="log"
        aria-label="Timeline"
        aria-live="off"
        tabIndex={0}
        className="h-full overflow-x-hidden overflow-y-auto pb-3 [overflow-anchor:none]"
        onWheel={(event) => event.deltaY < 0 && leave()}
        onTouchMove={leave}
        onKeyDown={(event) => UPWARDS.has(event.key) && leave()}
        onPointerUp={() => requestAnimationFrame(settle)}
        onScroll={settle}
      >
        <div data-rows>
          {hasEarlier && (
            <div className="pt-3 text-center">
              <button
                type="button"
                className="btn"
                onClick={() => ((following.current = false), void live.loadEarlier())}
              >
                Show earlier turns
              </button>
            </div>
          )}
          <Virtualizer
            ref={list}
            scrollRef={box}
            data={order}
            bufferSize={600}
            itemSize={44}
            startMargin={hasEarlier ? 42 : 0}
          >
            {({ id, steps }) =>
              steps.length ? (
                <div key={id}>
                  <Steps id={id} steps={steps} marked={steps.includes(marked ?? "") ? marked : undefined} />
                </div>
              ) : (
                <RowView key={id} id={id} marked={marked === id} />
              )
            }
          </Virtualizer>
          <Starting />
        </div>
      </div>
      {away && (
        <button type="button" className="btn absolute right-4 bottom-3 rounded-full shadow-md" onClick={jump}>
          <ArrowDown size={14} /> To the end
        </button>
      )}
    </div>
  );
}

/** The row that the address names (`#e` and a sequence), brought into view once it is there. */
function useMarked(
  list: React.RefObject<VirtualizerHandle | null>,
  leave: () => void,
  setAway: (away: boolean) => void,
): string | undefined {
  const live = useLive();
  const hash = useHash();
  const isLoaded = useHead((head) => head.order.length > 0);
  const [marked, setMarked] = useState<string>();
  useEffect(() => {
    const sequence = Number(/^#e(\d+)$/.exec(hash)?.[1]);
    const id = sequence && isLoaded ? live.rowOfSequence(sequence) : undefined;
    setMarked(id);
    if (!id) return;
    leave();
    setAway(true);
    const index = placeIn(
      entriesOf(live.head.get().order, (row) => live.row(row)),
      id,
    );
    const timer = setTimeout(() => {
      leave(); // the scroll to the end, before the row was known, may have been told only now
      list.current?.scrollToIndex(index, { align: "center" });
    }, 50);
    return () => clearTimeout(timer);
  }, [hash, isLoaded, live, list, leave, setAway]);
  return marked;
}
