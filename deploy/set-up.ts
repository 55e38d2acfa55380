/** `npm run setup`: installs everything and starts nothing. The bootstrap has already installed the packages. */
import { join } from "node:path";
import { buildPages } from "../gateway/web/build.ts";
import { UserError } from "../services/runtime/user-error.ts";
import { findNatsServer } from "./embedded/find-nats-server.ts";

const HELP = `Installs the packages and a nats-server, and starts nothing.

  npm run setup

  NATS_URL                    set: this machine needs no nats-server
  NATS_SERVER_BIN             the nats-server to use, in place of one on PATH or a fetched one
  DEVICE_PAYMENTS_CACHE_DIR   where a fetched one is kept; .cache
`;

const print = (line: string): void => void process.stdout.write(`${line}\n`);

try {
  if (process.argv.includes("--help")) {
    process.stdout.write(HELP);
    process.exit();
  }
  print(`Node ${process.versions.node} and the packages are installed.`);
  if (process.env["NATS_URL"]) print("NATS_URL is set: this machine needs no nats-server.");
  else {
    const { path, version } = await findNatsServer({
      environment: process.env,
      checkout: join(import.meta.dirname, ".."),
      print,
    });
    print(`nats-server ${version} is at ${path}.`);
  }
  await buildPages();
  print("The pages are built.");
  print("Next: `npm start` for everything on this machine, or read docs/operations.md to run the processes yourself.");
} catch (error) {
  if (!(error instanceof UserError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error.exitCode;
}
