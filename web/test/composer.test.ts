import { expect, test } from "vitest";
import { best } from "../src/state/fuzzy";
import { begunAt, ownCommand } from "../src/session/suggestions";

const PATHS = ["src/main.py", "src/maintenance/plan.py", "docs/manual.md", "web/src/session/composer.tsx", "README.md"];
const NONE: ReadonlySet<string> = new Set();

test("letters of the name count more than letters of the way there", () => {
  expect(best(PATHS, "main", NONE, 2)[0]).toBe("src/main.py");
  expect(best(PATHS, "comp", NONE, 1)).toEqual(["web/src/session/composer.tsx"]);
  expect(best(PATHS, "wsc", NONE, 1)).toEqual(["web/src/session/composer.tsx"]);
  expect(best(PATHS, "READ", NONE, 1)).toEqual(["README.md"]);
  expect(best(PATHS, "zzz", NONE, 9)).toEqual([]);
});

test("without letters, what changed comes first", () => {
  expect(best(PATHS, "", new Set(["docs/manual.md"]), 2)[0]).toBe("docs/manual.md");
});

test("a hundred thousand paths are looked through at once", () => {
  const many = Array.from({ length: 100_000 }, (_, number) => `packages/part${number % 300}/src/file${number}.ts`);
  expect(best(many, "part7file7.ts", NONE, 1)).toEqual(["packages/part7/src/file7.ts"]);
});

test("what is begun at the caret", () => {
  expect(begunAt("look at @src/ma", 15)).toEqual({ kind: "file", query: "src/ma", start: 8 });
  expect(begunAt("look at @src/ma please", 15)).toEqual({ kind: "file", query: "src/ma", start: 8 });
  expect(begunAt("@", 1)).toEqual({ kind: "file", query: "", start: 0 });
  expect(begunAt("mail me@example.org", 19)).toBeUndefined();
  expect(begunAt("/rev", 4)).toEqual({ kind: "command", query: "rev", start: 0 });
  expect(begunAt("and/or", 6)).toBeUndefined();
  expect(begunAt("/review the code", 16)).toBeUndefined();
});

test("what dialogs are for is not sent", () => {
  expect(ownCommand(" /model ")?.name).toBe("model");
  expect(ownCommand("/model opus")).toBeUndefined();
});
