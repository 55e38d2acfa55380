/** `npm run setup`: everything is installed and nothing is started. The bootstrap has installed the packages by now. */
import { join } from "node:path";
import { UserError } from "../services/runtime/user-error.ts";
import { findNatsServer } from "./embedded/find-nats-server.ts";

const print = (line: string): void => void process.stdout.write(`${line}\n`);

try {
  print(`Node ${process.versions.node} and the packages are installed.`);
  if (process.env["NATS_URL"]) print("NATS_URL is set: no nats-server is needed here.");
  else {
    const { path, version } = await findNatsServer({
      environment: process.env,
      checkout: join(import.meta.dirname, ".."),
      print,
    });
    print(`nats-server ${version} is at ${path}.`);
  }
  print("Next: `npm start` for everything on this machine, or docs/operations.md for processes of your own.");
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error.exitCode;
}
