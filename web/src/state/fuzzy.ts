// Which paths a few letters mean: all letters in order, rather together and at the beginnings of names.

const SEPARATORS = /[/._\- ]/;

/** How well the letters fit, higher is better; undefined if they are not all there. Both are lower case. */
export function score(path: string, letters: string): number | undefined {
  let at = path.length;
  let points = 0;
  for (let index = letters.length - 1; index >= 0; index--) {
    const found = path.lastIndexOf(letters[index]!, at - 1);
    if (found < 0) return undefined;
    if (found === at - 1) points += 4;
    if (found === 0 || SEPARATORS.test(path[found - 1]!)) points += 3;
    at = found;
  }
  const name = path.lastIndexOf("/") + 1;
  if (letters && path.startsWith(letters, name)) points += 12;
  else if (letters && path.includes(letters, name)) points += 8;
  return points - path.length / 100;
}

/** The paths that fit best; those in `first` win where little else decides. */
export function best(paths: readonly string[], query: string, first: ReadonlySet<string>, most: number): string[] {
  const letters = query.toLowerCase();
  const found: [string, number][] = [];
  for (const path of paths) {
    const points = score(path.toLowerCase(), letters);
    if (points !== undefined) found.push([path, points + (first.has(path) ? 6 : 0)]);
  }
  found.sort(([one, points], [other, others]) => others - points || (one < other ? -1 : 1));
  return found.slice(0, most).map(([path]) => path);
}
