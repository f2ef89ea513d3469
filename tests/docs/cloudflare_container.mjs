// The Worker of the example, with a container that is played: its server runs on this machine.
import example, { Ostler as Example } from "cloudflare.mjs";

export default example;

export class Ostler extends Example {
  constructor(state, env) {
    Object.defineProperty(state, "container", { value: new Container(env) });
    super(state, env);
  }
}

class Container {
  running = false;

  constructor({ PROVIDER: provider, SERVER: server }) {
    this.provider = provider;
    this.server = server;
  }

  start(options) {
    this.running = true;
    const asked = { method: "POST", body: JSON.stringify(options) };
    this.started = this.provider.fetch("http://provider/cloudflare/start", asked);
  }

  monitor() {
    return new Promise(() => {}); // it does not end
  }

  getTcpPort(port) {
    return {
      fetch: async (...asked) => {
        await this.started;
        if (port !== 2468) throw new Error("the container is not listening");
        return this.server.fetch(...asked).catch(() => {
          throw new Error("the container is not listening");
        });
      },
    };
  }
}
