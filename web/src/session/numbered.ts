// Diffs of pieces of files, as asks have them, with the line numbers that the pieces have in their files.
import { useEffect, useState } from "react";
import { api } from "../api/client";
import { pathOf, renumbered } from "../state/diff";
import { shortPath } from "../state/paths";

const MOST_BYTES = 1024 * 1024;

/** The same diff until the file was read, and if it cannot be. */
export function useNumbered(
  session: string,
  cwd: string | null | undefined,
  diff: string,
  side: "old" | "new",
): string {
  const [found, setFound] = useState<{ of: string; text: string }>();
  useEffect(() => {
    const path = pathOf(diff);
    if (!path || !/^@@ -1[, ]/m.test(diff)) return;
    const control = new AbortController();
    api.file(session, shortPath(path, cwd), MOST_BYTES, control.signal).then(
      ({ data }) => setFound({ of: diff, text: renumbered(diff, new TextDecoder().decode(data), side) }),
      () => undefined, // a file that cannot be read keeps the numbers of the piece
    );
    return () => control.abort();
  }, [session, cwd, diff, side]);
  return found?.of === diff ? found.text : diff;
}
