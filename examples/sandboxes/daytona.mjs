// A server in a sandbox of Daytona. It wants DAYTONA_API_KEY, and a snapshot with Ostler or OSTLER_INSTALL.
import { Daytona } from "@daytonaio/sdk";
import { env, install, PORT, serve, told } from "./server.mjs";

const daytona = new Daytona();
const sandbox = await daytona.create({ snapshot: process.env.DAYTONA_SNAPSHOT, envVars: env, autoStopInterval: 0 });
try {
  if (install) {
    const { exitCode, result } = await sandbox.process.executeCommand(install, undefined, env, 600);
    if (exitCode !== 0) throw new Error(`OSTLER_INSTALL ended with ${exitCode}: ${result}`);
  }
  await sandbox.process.executeCommand(`nohup ${serve} > /tmp/ostler.log 2>&1 &`, undefined, env);
  const { url, token } = await sandbox.getPreviewLink(PORT);
  await told(url, { "x-daytona-preview-token": token });
} catch (error) {
  await sandbox.delete();
  throw error;
}
process.exit(0);
