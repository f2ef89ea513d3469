import { expect, test } from "vitest";
import { ApiError } from "../api/client";
import type { Problem } from "../api/types";
import { faultsOf, inputsOf, placed } from "./templates";

test("a text has the values of its variables, and keeps the places of those that have none", () => {
  const text = "Hello {{inputs.who}}, {{ inputs.count }} of {{ inputs.all }}: {{ other }}";
  expect(placed(text, { who: ["Ann", "Bob"], count: 0 })).toBe("Hello Ann, Bob, 0 of {{ inputs.all }}: {{ other }}");
});

test("what is typed becomes a value of the variable's type, and empty fields are left out", () => {
  const variables = {
    who: { type: "string" },
    count: { type: "integer" },
    sure: { type: "boolean" },
    parts: { type: "list" },
    none: { type: "string" },
  } as const;
  const typed = { who: "Ann", count: "7", sure: "true", parts: "a, b,", none: "" };
  expect(inputsOf(variables, typed)).toEqual({ who: "Ann", count: 7, sure: true, parts: ["a", "b"] });
  expect(inputsOf(variables, { count: "many" })).toEqual({ count: "many" });
});

test("every fault is told with its place", () => {
  const problem = { errors: { "agent.toml: x": ["is not known"], "AGENTS.md": ["one", "two"] } } as unknown as Problem;
  expect(faultsOf(new ApiError(422, "Wrong.", problem))).toEqual([
    "agent.toml: x is not known",
    "AGENTS.md one",
    "AGENTS.md two",
  ]);
  expect(faultsOf(new ApiError(0, "It does not answer."))).toEqual(["It does not answer."]);
});
