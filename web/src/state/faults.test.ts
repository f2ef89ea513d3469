import { expect, test } from "vitest";
import { ApiError } from "../api/client";
import type { Problem } from "../api/types";
import { faultsByField, objectOf, WrongField } from "./faults";

function refusal(problem: Partial<Problem>): ApiError {
  return new ApiError(422, "Refused.", {
    type: "",
    title: "",
    status: 422,
    code: "",
    detail: "",
    ...problem,
  } as Problem);
}

test("what is wrong stands at the narrowest field that is shown, and the rest apart", () => {
  const errors = {
    cron: ["has four fields"],
    "inputs.who": ["is required"],
    "inputs.else": ["is no variable"],
    zone: ["?"],
  };
  const { of, rest } = faultsByField(refusal({ errors }), ["cron", "inputs", "inputs.who"]);
  expect(of).toEqual({ cron: "has four fields", "inputs.who": "is required", inputs: "inputs.else is no variable" });
  expect(rest).toEqual(["zone ?"]);
});

test("an error that names no field is told at the one that it is about", () => {
  expect(faultsByField(refusal({ code: "trigger_exists" }), ["name"]).of).toEqual({ name: "Refused." });
  expect(faultsByField(refusal({ code: "trigger_exists" }), []).rest).toEqual(["name Refused."]);
  expect(faultsByField(new Error("No connection."), ["name"]).rest).toEqual(["No connection."]);
});

test("a JSON object is read, and what is none is told at its field", () => {
  expect(objectOf(" ", "filter")).toEqual({});
  expect(objectOf('{"a": 1}', "filter")).toEqual({ a: 1 });
  for (const text of ["[]", "{", "1", "null"]) expect(() => objectOf(text, "filter")).toThrow(WrongField);
});
