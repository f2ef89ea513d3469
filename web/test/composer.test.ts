import { expect, test } from "vitest";
import { best } from "../src/state/fuzzy";
import { fitting, ownCommand } from "../src/session/commands";
import { begunAt } from "../src/session/suggestions";
import { expanded, nameFor, placeIn } from "../src/state/prompts";

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

test("commands and prompts are found by letters of their names, then by words of what they do", () => {
  const all = [
    { id: "1", name: "review", label: "", hint: "Looks for bugs" },
    { id: "2", name: "release", label: "", hint: "Writes notes to review" },
    { id: "3", name: "tea", label: "", hint: "" },
  ];
  expect(fitting(all, "rv").map(({ name }) => name)).toEqual(["review"]);
  expect(fitting(all, "review").map(({ name }) => name)).toEqual(["review", "release"]);
  expect(fitting(all, "").length).toBe(3);
});

const PROMPTS = [
  { name: "review", text: "Review $ARGUMENTS, all of $ARGUMENTS.", createdAt: "", updatedAt: "" },
  { name: "tea", text: "Make tea.", createdAt: "", updatedAt: "" },
];

test("a message that names a saved prompt means its text with what it is given", () => {
  expect(expanded("/review the $& parser", PROMPTS)).toBe("Review the $& parser, all of the $& parser.");
  expect(expanded("/tea", PROMPTS)).toBe("Make tea.");
  expect(expanded("/tea green\none", PROMPTS)).toBe("Make tea.\n\ngreen\none");
  expect(expanded("/other x", PROMPTS)).toBe("/other x");
  expect(expanded("see /tea", PROMPTS)).toBe("see /tea");
});

test("the place to fill is selected, and a text has a name", () => {
  expect(placeIn("Review $ARGUMENTS.")).toEqual([7, 17]);
  expect(placeIn("Make tea.")).toEqual([9, 9]);
  expect(nameFor("Review $ARGUMENTS for bugs: be strict!")).toBe("review-for-bugs");
  expect(nameFor("…")).toBe("");
});
