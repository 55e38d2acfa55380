/** What runs have begun, each in a file of its own until it has ended: the next run ends what one that was killed has left. */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { dataFile, readJson } from "../command.ts";
import { deviceSettingsSchema, restoreSettings } from "./device-settings.ts";
import { newWire, Party } from "./http.ts";
import { CannotRun, type FreshSandbox } from "./world.ts";

const begunSchema = z.object({
  baseUrl: z.string(),
  /** Of the process that runs it. */
  pid: z.int(),
  /** The owner's session. */
  token: z.string(),
  settings: z.array(deviceSettingsSchema).readonly(),
});
export type BegunRun = Pick<z.infer<typeof begunSchema>, "token" | "settings">;

/** The runs at one sandbox that this machine knows of. */
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

  /** Of this process. */
  remember({ token, settings }: BegunRun): void {
    if (!existsSync(this.#folder)) mkdirSync(this.#folder, { mode: 0o700 });
    const begun = { baseUrl: this.#baseUrl, pid: process.pid, token, settings };
    writeFileSync(this.#file, JSON.stringify(begun), { mode: 0o600 });
  }

  forget(): void {
    rmSync(this.#file, { force: true });
  }

  /**
   * Restores what runs that were killed have changed, and ends their sessions. What is of another service stays there. Throws
   * `CannotRun` when the service does not do it: the file is kept for the next run.
   */
  async end(owner: Party, { displayId, companionId }: FreshSandbox): Promise<void> {
    for (const name of readdirSync(this.#folder).filter((each) => each.startsWith(this.#name))) {
      const file = join(this.#folder, name);
      const begun = readJson(file, begunSchema);
      if (begun === undefined || begun.baseUrl !== this.#baseUrl || isRunning(begun.pid)) continue;
      const isHere = (deviceId: number): boolean => deviceId === displayId || deviceId === companionId;
      await restoreSettings(
        owner,
        begun.settings.filter((each) => isHere(each.device_id)),
      );
      const wire = newWire(this.#baseUrl, new AbortController().signal);
      const party = new Party(wire, "owner", "/api/backoffice/v1/", begun.token);
      const { status, text } = await party.send("DELETE", "session/");
      if (status >= 300 && status !== 401)
        throw new CannotRun(`The session of a run that was killed cannot be ended: ${status} ${text}`);
      rmSync(file, { force: true });
    }
  }
}

/** This process, or another one that has not ended. */
function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}
