// Looks for nats-server without the system's folders, and prints where it is and which version.
import { findNatsServer } from "../../../deploy/embedded/find-nats-server.ts";

const say = (line: string) => process.stdout.write(`${line}\n`);
try {
  const found = await findNatsServer({ environment: process.env, checkout: "/nonexistent", say, systemFolders: [] });
  say(`found ${found.path} ${found.version}`);
} catch (error) {
  say(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
