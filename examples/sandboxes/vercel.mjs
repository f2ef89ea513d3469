// A server in a sandbox of Vercel. It wants VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID, and OSTLER_INSTALL
// unless VERCEL_IMAGE names an image with Ostler.
import { Sandbox } from "@vercel/sandbox";
import { env, install, PORT, serve, told } from "./server.mjs";

const { VERCEL_TOKEN: token, VERCEL_TEAM_ID: teamId, VERCEL_PROJECT_ID: projectId, VERCEL_IMAGE: image } = process.env;
const what = image ? { image } : { runtime: "python3.13" };
const sandbox = await Sandbox.create({ token, teamId, projectId, ...what, env, ports: [PORT], timeout: 3_600_000 });
try {
  if (install) {
    const { exitCode } = await sandbox.runCommand("sh", ["-c", install]);
    if (exitCode !== 0) throw new Error(`OSTLER_INSTALL ended with ${exitCode}.`);
  }
  await sandbox.runCommand({ cmd: "sh", args: ["-c", serve], env, detached: true });
  await told(sandbox.domain(PORT));
} catch (error) {
  await sandbox.stop();
  throw error;
}
process.exit(0);
