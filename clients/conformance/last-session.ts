/** The owner's session of the run, kept until it has ended: a run that was killed is cleaned up by the next one. */
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { readJson } from "../command.ts";
import { clientLimits } from "../limits.ts";

const sessionSchema = z.object({ baseUrl: z.string(), token: z.string() });

export function rememberSession(file: string, baseUrl: string, token: string): void {
  const folder = dirname(file);
  if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
  writeFileSync(file, JSON.stringify({ baseUrl, token }), { mode: 0o600 });
}

/** Ends the session that the file names, if there is one, and removes the file. A session of another service stays there. */
export async function forgetSession(file: string, baseUrl: string): Promise<void> {
  const session = readJson(file, sessionSchema);
  if (session === undefined || session.baseUrl !== baseUrl) return;
  const signal = AbortSignal.timeout(clientLimits.conformanceAnswerMs);
  const headers = { authorization: `Bearer ${session.token}` };
  await fetch(`${baseUrl}/api/backoffice/v1/session/`, { method: "DELETE", headers, signal }).catch(() => undefined);
  rmSync(file, { force: true });
}
