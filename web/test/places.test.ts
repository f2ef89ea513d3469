import { expect, test } from "vitest";
import type { Session } from "../src/api/types";
import { placeOf } from "../src/state/places";

const session = (more: object) => ({ id: "ses_1", vcs: { repoMode: "none" }, ...more }) as unknown as Session;

test("a folder that is worked in as it is has a name", () => {
  expect(placeOf(session({ cwd: "/home/ann/shop" }))).toEqual({ key: "/home/ann/shop", kind: "folder", name: "shop" });
});

test("an empty folder of its own has none, be it a workspace or not", () => {
  expect(placeOf(session({ cwd: "/state/sessions/ses_1/work" }))).toBeUndefined();
  expect(placeOf(session({ cwd: "/state/workspaces/a1/tree", workspaceId: "wsp_1" }))).toBeUndefined();
});
