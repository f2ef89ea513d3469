// What is the same in every sandbox: how the server is started, and how one knows that it answers.

export const PORT = 2468;

const token = process.env.OSTLER_TOKEN;
if (!token) {
  console.error("Set OSTLER_TOKEN: everybody who knows the sandbox's address can reach its port.");
  process.exit(2);
}

/** The variables of the server. */
export const env = { OSTLER_TOKEN: token };

/** A shell command that puts Ostler into a sandbox whose image does not have it. */
export const install = process.env.OSTLER_INSTALL;

export const serve = `ostler serve --host 0.0.0.0 --port ${PORT}`;

/** Wait until the server takes work, and tell where; some providers want headers of their own with each request. */
export async function told(url, headers = {}) {
  const end = Date.now() + 1000 * Number(process.env.OSTLER_WAIT_SECONDS ?? 120);
  const asked = () => fetch(`${url}/readyz`, { headers, signal: AbortSignal.timeout(5000) });
  while (!(await asked().then((answer) => answer.ok, () => false))) {
    if (Date.now() > end) throw new Error(`No server answers at ${url}.`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  console.log(JSON.stringify({ url, headers }));
}
