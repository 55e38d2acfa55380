/** What the virtual companion does for which name and amount: it is an outside party, so its own program is asked. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { deployLimits } from "../limits.ts";
import type { MagicBehaviourFacts } from "./facts.ts";

const printedSchema = z.object({
  magic_behaviours: z.array(
    z.object({
      nameEnding: z.string(),
      amountEnding: z.string().nullable(),
      companion: z.string(),
      outcome: z.string(),
    }),
  ),
});

export async function readMagicBehaviours(checkout: string): Promise<readonly MagicBehaviourFacts[]> {
  const script = join(checkout, "clients", "print-magic-behaviours.ts");
  const options = { timeout: deployLimits.seedMs };
  const { stdout } = await promisify(execFile)(process.execPath, [script], options);
  return printedSchema.parse(JSON.parse(stdout)).magic_behaviours;
}
