/** The settings that a process documents are those that it checks. */
import { execFileSync, spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { START_DESCRIPTION } from "../../deploy/settings.ts";
import { settingsDocuments } from "../../deploy/settings-documents.ts";
import { GATEWAY_DESCRIPTION } from "../../gateway/settings.ts";
import { setting } from "../../services/runtime/settings.ts";
import { helpText, settingsOf } from "../../services/runtime/settings-help.ts";
import { describeServices, SERVICES } from "../../services/service-list.ts";
import { programEnvironment } from "../support/running-program.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const described = async () => [
  START_DESCRIPTION,
  GATEWAY_DESCRIPTION,
  ...(await Promise.all(Object.keys(SERVICES).map((name) => describeServices([name])))),
];

describe("settingsOf", () => {
  const about = (schemas: z.ZodType[]) => settingsOf({ ...GATEWAY_DESCRIPTION, schemas });

  it("a schema with a default, a required and an optional setting: each with its properties", () => {
    const schema = z
      .object({
        LIMIT: setting(z.coerce.number().default(3), { meaning: "A limit." }),
        KEY: setting(z.string(), { meaning: "A key.", shared: true, secret: true }),
        EXTRA: setting(z.string().optional(), { meaning: "More.", unset: "nothing more" }),
      })
      .refine(() => true)
      .transform((values) => values.LIMIT);
    expect(about([schema])).toEqual([
      { name: "LIMIT", meaning: "A limit.", byDefault: "3", isNeeded: false },
      { name: "KEY", meaning: "A key.", byDefault: undefined, isNeeded: true, shared: true, secret: true },
      { name: "EXTRA", meaning: "More.", byDefault: undefined, isNeeded: false, unset: "nothing more" },
    ]);
  });

  it("a setting without an explanation: an error that names it", () => {
    expect(() => about([z.object({ BARE: z.string() })])).toThrow("The setting BARE has no explanation");
  });

  it("every process: a setting whose name is that of a secret is marked as secret", async () => {
    const all = (await described()).flatMap(settingsOf);
    expect(all.length).toBeGreaterThan(100);
    const suspects = all.filter(({ name }) =>
      /KEYS?$|KEY_FILE|SECRET|PASSWORD|TOKEN|CREDENTIALS|(NATS|DATABASE)_URL/.test(name),
    );
    expect(suspects.filter(({ secret }) => secret !== true).map(({ name }) => name)).toEqual([]);
  });
});

describe("the documents of the settings", () => {
  it("a setting that a process requires: its row and its block in the example state that", async () => {
    const [page = "", example = ""] = (await settingsDocuments()).map(({ text }) => text);
    const processes = (await described()).filter(({ name }) => name !== START_DESCRIPTION.name);
    for (const description of processes) {
      for (const { name } of settingsOf(description).filter(({ isNeeded }) => isNeeded)) {
        const row = page.split("\n").find((line) => line.startsWith(`| \`${name}\` | `)) ?? "";
        const byDefault = row.split(" | ")[2];
        const block = example.split("\n\n").find((each) => new RegExp(`^#?${name}=`, "m").test(each)) ?? "";
        const isForAll = byDefault === "needed" && block.includes(`\n${name}=`);
        const isForThis =
          byDefault?.includes(`needed by \`${description.name}\``) === true &&
          block.includes(`\n# Needed by ${description.name}.\n`);
        expect(isForAll || isForThis, `${name} of ${description.name}`).toBe(true);
      }
    }
  });
});

describe("--help", () => {
  const help = (...args: readonly string[]): string =>
    execFileSync(process.execPath, args, { cwd: CHECKOUT, encoding: "utf8", env: programEnvironment({}) });

  it("each process: names what it does and each of its settings once", async () => {
    for (const description of await described()) {
      const text = helpText(description);
      expect(text).toContain(description.command);
      for (const { name } of settingsOf(description)) {
        expect(
          text.split("\n").filter((line) => line.startsWith(`  ${name} (`)),
          name,
        ).toHaveLength(1);
      }
    }
  });

  it("an environment without settings: the commands print their help and end with 0", async () => {
    expect(help("gateway/main.ts", "--help")).toBe(helpText(GATEWAY_DESCRIPTION));
    expect(help("services/main.ts", "stations", "--help")).toBe(helpText(await describeServices(["stations"])));
    const list = help("services/main.ts", "--help");
    for (const name of Object.keys(SERVICES)) expect(list).toMatch(new RegExp(`^  ${name} +\\S`, "m"));
  });

  it("`npm start` and `npm run setup`: print the help, and start and install nothing", () => {
    expect(help("deploy/start.ts", "--help")).toBe(helpText(START_DESCRIPTION));
    expect(help("deploy/set-up.ts", "--help")).toContain("npm run setup\n");
  });

  it("arguments that a process does not have: it names them, starts nothing, and ends with 1", () => {
    for (const program of ["deploy/start.ts", "gateway/main.ts"]) {
      const ended = spawnSync(process.execPath, [program, "--port", "80"], { cwd: CHECKOUT, encoding: "utf8" });
      expect([ended.status, ended.stdout], program).toEqual([1, ""]);
      expect(ended.stderr, program).toMatch(
        /such as --port 80: its settings are environment variables, which --help lists\.\n$/,
      );
    }
  });
});

describe("a start of services", () => {
  /** No server listens here. A process that connects before it checks its settings ends later, with an error about NATS. */
  const NATS_URL = "nats://127.0.0.1:1";
  const DATABASE_URL = "postgres://payments@127.0.0.1:1/payments";
  const start = (names: readonly string[], settings: Readonly<Record<string, string>>) =>
    spawnSync(process.execPath, ["services/main.ts", ...names], {
      cwd: CHECKOUT,
      encoding: "utf8",
      env: programEnvironment(settings),
    });

  it.each<[string, readonly string[], Readonly<Record<string, string>>, string]>([
    ["a service lacks a setting that it needs", ["webhook-signer"], { DATABASE_URL }, "Set WEBHOOK_SECRETS_KEY: "],
    ["the second service lacks a setting", ["settlement", "providers"], { DATABASE_URL }, "Set PROVIDER_SECRETS_KEY: "],
    ["a setting is not usable", ["stations"], { INTENT_LIFETIME_MS: "-4" }, "The setting INTENT_LIFETIME_MS is not "],
    ["a setting of the disk is not usable", ["stations"], { DISK_RESERVE_MB: "x" }, "The setting DISK_RESERVE_MB is "],
    ["the database is not set", ["relay"], {}, "Set DATABASE_URL: "],
    ["a service is named twice", ["relay", "relay"], { DATABASE_URL }, "The service relay is named twice"],
  ])("%s: it reports this before it connects to a server, and ends with 1", (_what, names, settings, sentence) => {
    const ended = start(names, { NATS_URL, ...settings });
    expect([ended.status, ended.stdout]).toEqual([1, ""]);
    expect(ended.stderr.startsWith(sentence), ended.stderr).toBe(true);
    expect(ended.stderr.trim().split("\n")).toHaveLength(1);
  });
});
