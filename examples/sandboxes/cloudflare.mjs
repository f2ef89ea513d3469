// A server in a container of Cloudflare, and the Worker in front of it. `wrangler.jsonc` names the image, which must have
// Ostler; `wrangler secret put OSTLER_TOKEN` sets the token.
import { Container, getContainer } from "@cloudflare/containers";

/** One container with a server; what is in its file system is gone when it sleeps. */
export class Ostler extends Container {
  defaultPort = 2468;
  pingEndpoint = "localhost/readyz";
  sleepAfter = "2h"; // without a request
  envVars = Object.fromEntries(
    Object.entries(this.env).filter(([name, value]) => name.startsWith("OSTLER_") && typeof value === "string"),
  );
}

export default {
  async fetch(request, env) {
    if (!env.OSTLER_TOKEN) {
      const detail = "Set OSTLER_TOKEN (wrangler secret put OSTLER_TOKEN): everybody who knows the address can reach it.";
      return Response.json({ detail }, { status: 503 });
    }
    return getContainer(env.OSTLER).fetch(request);
  },
};
