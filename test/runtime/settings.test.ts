import { describe, expect, it } from "vitest";
import { runServices } from "../../services/runtime/run-services.ts";
import { parseSettings, requireDatabaseUrl, sharedSettingsSchema } from "../../services/runtime/settings.ts";
import { readStationsSettings } from "../../services/stations/settings.ts";

const parseWrong = () => parseSettings(sharedSettingsSchema, { NATS_URL: "nats://x", METRICS_PORT: "secret" });

describe("settings from the environment", () => {
  it("variables that are not set or empty: the defaults", () => {
    const settings = parseSettings(sharedSettingsSchema, { NATS_URL: "nats://127.0.0.1:4222", METRICS_PORT: "" });
    expect(settings).toEqual({
      natsUrl: "nats://127.0.0.1:4222",
      natsAccess: {},
      databaseUrl: undefined,
      logLevel: "info",
    });
  });

  it("a wrong variable: one sentence with its name, without its value", () => {
    expect(parseWrong).toThrow(expect.objectContaining({ code: "invalid_setting" }));
    expect(parseWrong).toThrow(/^The setting METRICS_PORT is not usable: [^\n]*\.$/);
    expect(parseWrong).not.toThrow(/secret/);
  });

  it.each([
    [
      "NATS_URL",
      "hello",
      "it must be an address like nats://token@127.0.0.1:4222, or several separated by commas, with percent escapes for special characters of user and password",
    ],
    ["DATABASE_URL", "hello", "it must be an address like postgres://user:password@host:5432/database"],
  ])("%s=%s: refused with an example of a good address", (name, value, rule) => {
    const environment = { NATS_URL: "nats://127.0.0.1:4222", [name]: value };
    expect(() => parseSettings(sharedSettingsSchema, environment)).toThrow(
      `The setting ${name} is not usable: ${rule}.`,
    );
  });

  it("a service that needs a database, without DATABASE_URL: the error names the setting", () => {
    const settings = parseSettings(sharedSettingsSchema, { NATS_URL: "nats://x" });
    expect(() => requireDatabaseUrl(settings)).toThrow(
      "Set DATABASE_URL: it must be an address like postgres://user:password@host:5432/database.",
    );
  });

  it("no NATS_URL: the error has the next step, with an example of a valid address", () => {
    expect(() => parseSettings(sharedSettingsSchema, {})).toThrow(
      "Set NATS_URL: it must be an address like nats://token@127.0.0.1:4222, or several separated by commas, with percent escapes for special characters of user and password.",
    );
  });

  it("an unknown service: the error has its name, and the existing services", async () => {
    const options = { environment: {}, checkSettings: async () => undefined, reachDatabase: async () => undefined };
    const startNothing = async () => ({ stop: async () => undefined });
    await expect(runServices(["audit", "nonsense"], { audit: startNothing }, options)).rejects.toThrow(
      'There is no service "nonsense". Name the services to run: audit.',
    );
    await expect(runServices([], { audit: startNothing }, options)).rejects.toThrow(
      /^Name the services to run: audit\.$/,
    );
  });

  it("the actor host's: the defaults of the design, and a value out of bounds is refused", () => {
    expect(readStationsSettings({})).toEqual({
      machine: { intentLifetimeMs: 180_000, deviceSilenceMs: 25_000, leaseLifetimeMs: 900_000 },
      passivateMs: 30_000,
    });
    expect(() => readStationsSettings({ INTENT_LIFETIME_MS: "1000" })).toThrow(/INTENT_LIFETIME_MS/);
  });
});
