/** `--help` of the commands, as it is typed. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { programEnvironment } from "../support/running-program.ts";

const CLI = join(import.meta.dirname, "..", "..", "clients", "cli.ts");
const COMMANDS = ["sandbox", "devices", "webhooks", "conformance", "certify", "certificate"];

/** The commands that this help shows how to type. */
function commandsIn(...args: readonly string[]): readonly string[] {
  const { status, stdout } = spawnSync(process.execPath, [CLI, ...args], {
    env: programEnvironment({}),
    encoding: "utf8",
  });
  expect(status).toBe(0);
  return COMMANDS.filter((name) => new RegExp(`^ *npm run (cli -- )?${name} `, "m").test(stdout));
}

test("--help shows all commands, and that of a command this one alone", () => {
  expect(commandsIn("--help")).toEqual(COMMANDS);
  for (const name of COMMANDS) expect(commandsIn(name, "--help"), name).toEqual([name]);
  expect(commandsIn("devices", "enroll", "-h")).toEqual(["devices"]);
});
