/** `--help` of the commands, as a person types it. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { programEnvironment } from "../support/running-program.ts";

const CLIENTS = join(import.meta.dirname, "..", "..", "clients");
const COMMANDS = ["sandbox", "devices", "webhooks", "conformance", "certify", "certificate"];

function outputOf(program: string, ...args: readonly string[]): string {
  const { status, stdout } = spawnSync(process.execPath, [join(CLIENTS, program), ...args], {
    env: programEnvironment({}),
    encoding: "utf8",
  });
  expect(status).toBe(0);
  return stdout;
}

/** The commands for which this help shows how to type them. */
function commandsIn(...args: readonly string[]): readonly string[] {
  const stdout = outputOf("cli.ts", ...args);
  return COMMANDS.filter((name) => new RegExp(`^ *npm run (cli -- )?${name} `, "m").test(stdout));
}

test("--help: shows all commands; the --help of one command: shows only that command", () => {
  expect(commandsIn("--help")).toEqual(COMMANDS);
  for (const name of COMMANDS) expect(commandsIn(name, "--help"), name).toEqual([name]);
  expect(commandsIn("devices", "enroll", "-h")).toEqual(["devices"]);
});

test.each(["cli.ts", "organization.ts", "statement.ts", "recon.ts", "conformance.ts"])(
  "%s --help: names the settings by which the command finds and trusts the service",
  (program) => {
    const help = outputOf(program, "--help");
    for (const name of ["BASE_URL", "GATEWAY_CERTIFICATE_FILE"]) expect(help).toContain(name);
  },
);
