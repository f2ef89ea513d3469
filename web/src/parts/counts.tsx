// How many lines came and went.

export function Counts({ added, removed }: { added: number; removed: number }) {
  if (!added && !removed) return null;
  return (
    <span className="font-mono text-2xs whitespace-nowrap">
      {added > 0 && <span className="text-ok">+{added}</span>}{" "}
      {removed > 0 && <span className="text-bad">−{removed}</span>}
    </span>
  );
}
