/** The owner's session of the run, kept until it has ended: a run that was killed is cleaned up by the next one. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { readJson } from "../command.ts";
import { newWire, Party } from "./http.ts";
import { CannotRun } from "./world.ts";

const sessionSchema = z.object({ baseUrl: z.string(), token: z.string() });

export function rememberSession(file: string, baseUrl: string, token: string): void {
  const folder = dirname(file);
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
  writeFileSync(file, JSON.stringify({ baseUrl, token }), { mode: 0o600 });
}

/**
 * Ends the session that the file names, if there is one, and removes the file. A session of another service stays there.
 * Throws `CannotRun` when the service does not end it: the file is kept for the next run.
 */
export async function endLastSession(file: string, baseUrl: string): Promise<void> {
  const session = readJson(file, sessionSchema);
  if (session === undefined || session.baseUrl !== baseUrl) return;
  const party = new Party(
    newWire(baseUrl, new AbortController().signal),
    "owner",
    "/api/backoffice/v1/",
    session.token,
  );
  const { status, text } = await party.send("DELETE", "session/");
  if (status >= 300 && status !== 401)
    throw new CannotRun(`The session of a run that was killed cannot be ended: ${status} ${text}`);
  rmSync(file, { force: true });
}
