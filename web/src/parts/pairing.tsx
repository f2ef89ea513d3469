// This page on a phone: its address and a key that ends by itself, as a code for the camera.
import { useState } from "react";
import { encode } from "uqr";
import { api, messageOf } from "../api/client";
import { connection } from "../api/connection";
import { Dialog } from "./dialog";
import { moment } from "./text";

const DAYS: [number, string][] = [
  [1, "A day"],
  [30, "30 days"],
];
const LOOPBACK = /^(localhost|127\.|\[::1\])/;

export default function Pairing({ onClose }: { onClose(): void }) {
  const [days, setDays] = useState(1);
  const [made, setMade] = useState<{ url: string; until: string }>();
  const [problem, setProblem] = useState<string>();
  const here = connection.get().endpoint || location.origin;
  const isAlone = LOOPBACK.test(new URL(here).host);
  const make = async () => {
    const until = new Date(Date.now() + days * 86_400_000).toISOString();
    try {
      const { key } = await api.makeKey({ name: "phone", role: "operator", expiresAt: until });
      setMade({ url: `${here}/#token=${encodeURIComponent(key)}`, until });
    } catch (failure) {
      setProblem(messageOf(failure));
    }
  };
  return (
    <Dialog label="Open on a phone" onClose={onClose} className="w-[26rem]">
      {problem && (
        <p role="alert" className="mb-2 rounded-md bg-bad-soft px-3 py-2 text-bad">
          {problem}
        </p>
      )}
      {isAlone && (
        <p className="mb-2 text-warn">
          {here} is an address of this machine alone. Open this page by a name or an address that the phone reaches too,
          then come back here.
        </p>
      )}
      {made ? (
        <>
          <Code text={made.url} />
          <p className="mt-2 text-dim">
            Point the camera of the phone at it. Whoever has the code can work with your sessions until{" "}
            {moment(made.until)}; <code>ostler keys revoke</code> ends it before.
          </p>
        </>
      ) : (
        <form className="flex flex-wrap items-end gap-3" onSubmit={(event) => (event.preventDefault(), void make())}>
          <label>
            <span className="label">For how long</span>
            <select className="field" value={days} onChange={(event) => setDays(Number(event.target.value))}>
              {DAYS.map(([count, words]) => (
                <option key={count} value={count}>
                  {words}
                </option>
              ))}
            </select>
          </label>
          <button type="submit" className="btn btn-main">
            Make a code
          </button>
        </form>
      )}
    </Dialog>
  );
}

/** Black on white in both themes, since cameras expect that. */
function Code({ text }: { text: string }) {
  const { data, size } = encode(text, { ecc: "M", border: 2 });
  const path = data.flatMap((row, y) => row.flatMap((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : []))).join("");
  return (
    <svg
      viewBox={`0 0 ${size} ${size}`}
      className="mx-auto w-full max-w-72 rounded bg-white"
      shapeRendering="crispEdges"
      role="img"
      aria-label="A code with the address of this page and a key"
      data-link={text}
    >
      <path d={path} fill="black" />
    </svg>
  );
}
