/** What `npm start` has written to `sandbox.json` in its data folder, as the commands read it. */
import { readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { z } from "zod";

const personSchema = z.object({ email: z.string(), password: z.string() });
const stationSchema = z.object({
  stationId: z.int(),
  devices: z.array(z.object({ deviceId: z.int(), kind: z.string() })),
});
const sandboxSchema = z.object({
  baseUrl: z.url(),
  certificate: z.object({ file: z.string(), publicKeyPin: z.string() }).nullable(),
  owner: personSchema,
  cashier: personSchema,
  operator: personSchema,
  robotics: z.object({ consumerId: z.int(), credential: z.string() }),
  station: stationSchema,
  demoStation: stationSchema,
});
const credentialSchema = z.object({ credential: z.string() });

export type SandboxFile = z.infer<typeof sandboxSchema> & {
  /** The credential of the virtual display at the demo station; empty while it has none. */
  readonly displayCredential: string;
};

export const sandboxPath = (env: NodeJS.ProcessEnv): string => resolve(env["DATA_DIR"] || ".data", "sandbox.json");

/** Undefined when there is no such file, or it is of another version. */
export function readSandboxFile(path: string): SandboxFile | undefined {
  const facts = sandboxSchema.safeParse(readJson(path)).data;
  if (facts === undefined) return undefined;
  const display = credentialSchema.safeParse(readJson(join(dirname(path), "virtual-display.json"))).data;
  return { ...facts, displayCredential: display?.credential ?? "" };
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}
