import { describe, expect, test } from "vitest";
import type { Runner } from "../src/api/types";
import { healthOf, joinCommand, labelsOf, originOf } from "../src/state/runners";

const runner = { health: "ok", draining: false, used: 0, lastBeat: "2026-01-01T00:00:00.000Z" } as Runner;

describe("runners", () => {
  test.each([
    [{}, "Linked"],
    [{ draining: true, used: 2 }, "Draining, 2 at work"],
    [{ draining: true }, "Drained"],
    [{ health: "lost" }, "Lost since"],
    [{ health: "lost", lastBeat: null }, "Not linked yet"],
    [{ health: "frozen" }, "frozen"],
  ])("%j is told in words", (change, text) => {
    expect(healthOf({ ...runner, ...change } as Runner).text).toBe(text);
  });

  test("until when turns may go on on one that drains", () => {
    const text = healthOf({ ...runner, draining: true, used: 1, drainUntil: "2026-01-01T12:30:00.000Z" }).text;
    expect(text).toMatch(/^Draining until \d\d:\d\d.*, 1 at work$/);
  });

  test.each([
    [{}, ""],
    [{ managed: { pool: "small", state: "running" } }, "made by the pool small"],
    [
      { managed: { pool: "small", state: "stopped" }, server: "http://10.0.0.1:1" },
      "made by the pool small, stopped · linked to http://10.0.0.1:1",
    ],
  ])("%j says where it comes from", (change, text) => {
    expect(originOf({ ...runner, ...change } as Runner)).toBe(text);
  });

  test("the command names the server, and says what plain http costs", () => {
    expect(joinCommand("https://o.example", "t")).toBe(
      "OSTLER_RUNNER_TOKEN=t ostler runner --server https://o.example",
    );
    expect(joinCommand("http://127.0.0.1:1", "t")).not.toContain("--insecure");
    expect(joinCommand("http://10.0.0.1:1", "t")).toContain("--insecure");
  });

  test("labels are words with one equals sign", () => {
    expect(labelsOf(" gpu=1, disk=big ")).toEqual({ gpu: "1", disk: "big" });
    expect(labelsOf("")).toEqual({});
    expect(labelsOf("gpu")).toBeUndefined();
  });
});
