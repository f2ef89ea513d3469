// A server in a sandbox of E2B. It wants E2B_API_KEY, and a template with Ostler or OSTLER_INSTALL.
import { Sandbox } from "e2b";
import { env, install, PORT, serve, told } from "./server.mjs";

const sandbox = await Sandbox.create(process.env.E2B_TEMPLATE ?? "base", { envs: env, timeoutMs: 3_600_000 });
try {
  if (install) await sandbox.commands.run(install, { timeoutMs: 600_000 });
  const server = await sandbox.commands.run(serve, { background: true, timeoutMs: 0 });
  await told(`https://${sandbox.getHost(PORT)}`);
  await server.disconnect(); // it goes on without us
} catch (error) {
  await sandbox.kill();
  throw error;
}
process.exit(0);
