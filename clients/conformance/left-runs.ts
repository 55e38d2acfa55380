/**
 * Stores the session of each run in a file until the session has ended. So the next run can end the session of a killed run.
 * Where no file can be written, as in the container of the image, such a session ends by its own time.
 */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { dataFile, readJson } from "../command.ts";
import { newWire, Party } from "./http.ts";
import { CannotRun } from "./world.ts";

const begunSchema = z.object({
  baseUrl: z.string(),
  /** The process of the run. */
  pid: z.int(),
  /** The owner's session. */
  token: z.string(),
});

/** The runs at one sandbox that were started on this machine. */
export class LeftRuns {
  readonly #folder: string;
  readonly #name: string;
  readonly #file: string;
  readonly #baseUrl: string;

  constructor(env: NodeJS.ProcessEnv, sandboxId: number, baseUrl: string) {
    this.#name = `conformance-${sandboxId}-`;
    this.#file = dataFile(env, `${this.#name}${randomUUID()}.json`);
    this.#folder = dirname(this.#file);
    this.#baseUrl = baseUrl;
  }

  /** Stores the session of this process's run, or writes to standard error that it cannot. */
  remember(token: string): void {
    const begun: z.infer<typeof begunSchema> = { baseUrl: this.#baseUrl, pid: process.pid, token };
    try {
      if (!existsSync(this.#folder)) mkdirSync(this.#folder, { mode: 0o700 });
      writeFileSync(this.#file, JSON.stringify(begun), { mode: 0o600 });
    } catch (error) {
      const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
      process.stderr.write(
        `This run cannot store its session in ${this.#folder} (${reason}), so no later run ends it if this one is killed; set DATA_DIR to a folder that it can write to.\n`,
      );
    }
  }

  forget(): void {
    // On a read-only file system `rmSync` throws for a file that is not there, too.
    if (existsSync(this.#file)) rmSync(this.#file, { force: true });
  }

  /**
   * Ends the sessions of killed runs, but not those at another service. Throws `CannotRun` when the service does not end one;
   * the file then stays for the next run.
   */
  async end(): Promise<void> {
    if (!existsSync(this.#folder) || !statSync(this.#folder).isDirectory()) return;
    for (const name of readdirSync(this.#folder).filter((each) => each.startsWith(this.#name))) {
      const file = join(this.#folder, name);
      const begun = readJson(file, begunSchema);
      if (begun === undefined || begun.baseUrl !== this.#baseUrl || isRunning(begun.pid)) continue;
      const wire = newWire(this.#baseUrl, new AbortController().signal);
      const party = new Party(wire, "owner", "/api/backoffice/v1/", begun.token);
      const { status, text } = await party.send("DELETE", "session/");
      if (status >= 300 && status !== 401)
        throw new CannotRun(`The session of a run that was killed cannot be ended: ${status} ${text}`);
      rmSync(file, { force: true });
    }
  }
}

/** Whether the process is running, also when it belongs to another user. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
