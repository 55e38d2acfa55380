/** The programs of an earlier commit, in a separate folder. */
import { execFile } from "node:child_process";
import { readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BusLayout } from "../../services/bus/stream-config.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);
const CHECKOUT = join(import.meta.dirname, "..", "..");

export interface OlderCheckout {
  readonly path: string;
  /** Runs the `migrate` of this checkout. */
  migrate(installation: {
    readonly databaseUrl: string;
    readonly natsUrl: string;
    readonly layout: BusLayout;
  }): Promise<void>;
  remove(): Promise<void>;
}

/** Checks the commit out, with the packages of its lock file. */
export async function checkOut(ref: string): Promise<OlderCheckout> {
  const folder = temporaryFolder("older");
  const { path } = folder;
  await run("git", ["worktree", "add", "--detach", path, ref], { cwd: CHECKOUT });
  const lockOf = (checkout: string): string => readFileSync(join(checkout, "package-lock.json"), "utf8");
  if (lockOf(path) === lockOf(CHECKOUT)) symlinkSync(join(CHECKOUT, "node_modules"), join(path, "node_modules"));
  else await run("npm", ["ci", "--no-audit", "--no-fund"], { cwd: path });
  return {
    path,
    async migrate({ databaseUrl, natsUrl, layout }) {
      const { replicas, logs } = layout;
      const args = [join(path, "services", "migrate.ts"), `--replicas=${replicas}`, `--logs=${logs}`];
      await run(process.execPath, args, { env: { ...process.env, DATABASE_URL: databaseUrl, NATS_URL: natsUrl } });
    },
    async remove() {
      await run("git", ["worktree", "remove", "--force", path], { cwd: CHECKOUT });
      folder.remove();
    },
  };
}
