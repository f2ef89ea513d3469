// What shows a session follows it for as long as it is shown.
import { useEffect, useState, type ReactNode } from "react";
import { enter, leave, type LiveSession } from "../state/live";
import { LiveContext } from "./context";

export function Entered({ id, children }: { id: string; children: ReactNode }) {
  const [live, setLive] = useState<LiveSession>();
  useEffect(() => {
    setLive(enter(id));
    return () => leave(id);
  }, [id]);
  if (!live || live.id !== id) return null;
  return <LiveContext value={live}>{children}</LiveContext>;
}
