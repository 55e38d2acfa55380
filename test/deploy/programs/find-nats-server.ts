// Searches for nats-server without the system's folders, and prints where it is and which version.
import { findNatsServer } from "../../../deploy/embedded/find-nats-server.ts";

const print = (line: string) => process.stdout.write(`${line}\n`);
try {
  const found = await findNatsServer({ environment: process.env, checkout: "/nonexistent", print, systemFolders: [] });
  print(`found ${found.path} ${found.version}`);
} catch (error) {
  print(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
