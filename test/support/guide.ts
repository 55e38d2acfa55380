/** The guides in `docs/`, whose examples the tests run. */
import { execFile, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";

const CHECKOUT = join(import.meta.dirname, "..", "..");
export const CLIENTS_FOLDER = join(CHECKOUT, "clients");
const readGuide = (name: string): string => readFileSync(join(CHECKOUT, "docs", name), "utf8");
export const guide = readGuide("webhooks.md");
export const deviceGuide = readGuide("devices.md");
export const tillGuide = readGuide("till.md");
export const operationsGuide = readGuide("operations.md");
export const reconciliationGuide = readGuide("reconciliation.md");

/** Returns the only block of that language that contains `mark`. Throws when none or several contain it. */
export function guideBlock(language: string, mark: string, text = guide): string {
  const blocks = [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, "gms"))];
  const [found, another] = blocks.map(([, code = ""]) => code).filter((code) => code.includes(mark));
  if (found === undefined || another !== undefined)
    throw new Error(`The guide does not have exactly one ${language} block with ${mark}.`);
  return found;
}

/** Runs the only line of a guide's shell blocks that contains `mark`. Returns the JSON that it prints, or undefined. */
export async function runGuideLine<T>(text: string, mark: string, variables: Record<string, string>): Promise<T> {
  const [line, another] = [...text.matchAll(/^```sh\n(.*?)^```$/gms)]
    .flatMap(([, code = ""]) => code.split("\n"))
    .filter((each) => each.includes(mark));
  if (line === undefined || another !== undefined)
    throw new Error(`The guide does not have exactly one line with ${mark}.`);
  const { stdout } = await promisify(execFile)("sh", ["-euc", line], { env: { ...process.env, ...variables } });
  return (stdout === "" ? undefined : JSON.parse(stdout)) as T;
}

export function isInstalled(program: string, ...args: string[]): boolean {
  return spawnSync(program, args).status === 0;
}
