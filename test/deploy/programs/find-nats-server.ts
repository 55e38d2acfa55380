// Searches for nats-server without the system's folders, and prints where it is and which version. MIRROR and KEYRING name
// another archive than Debian's.
import { findNatsServer } from "../../../deploy/embedded/find-nats-server.ts";

const { MIRROR, KEYRING } = process.env;
const archive = MIRROR === undefined || KEYRING === undefined ? {} : { mirrors: [MIRROR], keyrings: [KEYRING] };
const print = (line: string) => process.stdout.write(`${line}\n`);
try {
  const options = { environment: process.env, checkout: "/nonexistent", print, systemFolders: [] };
  const found = await findNatsServer({ ...options, ...archive });
  print(`found ${found.path} ${found.version}`);
} catch (error) {
  print(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
