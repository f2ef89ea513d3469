// A diff, of whose code a page without one loads nothing; until it is there its room is kept.
import { lazy, Suspense } from "react";

const DiffLines = lazy(() => import("./diff_lines"));

export function Diff(props: { text: string; label: string; meta?: boolean }) {
  return (
    <Suspense fallback={<Room text={props.text} />}>
      <DiffLines {...props} />
    </Suspense>
  );
}

function Room({ text }: { text: string }) {
  const lines = text.split("\n").filter((line) => /^[ +@-]/.test(line) && !/^(---|\+\+\+|@@ -0,0) /.test(line)).length;
  return <div className="code max-h-[32rem] overflow-hidden py-1 whitespace-pre">{"\n".repeat(lines)}</div>;
}
