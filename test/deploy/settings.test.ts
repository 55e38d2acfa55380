/** What `npm start` says about settings that it cannot use: which variable, and what is allowed, never the value. */
import { describe, expect, test } from "vitest";
import { metricsPorts, readSettings } from "../../deploy/settings.ts";

const PORT = "it must be a whole number from 0 to 65535, where 0 takes any free port";
const METRICS =
  "it must be a whole number from 0 to 65531, because the four ports after it are used, too; 0 takes any free ports";

const DATABASE = "it must be an address like postgres://user:password@host:5432/database";
const NATS = "it must be an address like nats://token@127.0.0.1:4222, several between commas";

describe("an unusable setting", () => {
  test.each([
    ["PORT", "abc", PORT],
    ["PORT", "70000", PORT],
    ["PORT", "-1", PORT],
    ["PORT", "80.5", PORT],
    ["PORT", "0x50", PORT],
    ["PORT", " ", PORT],
    ["METRICS_PORT", "65532", METRICS],
    ["METRICS_PORT", "nine", METRICS],
    ["LOG_MAX_MB", "19", "it must be a whole number of megabytes from 20 to 1000000, for all logs together"],
    ["DISK_RESERVE_MB", "0.5", "it must be a whole number of megabytes from 0 to 1048576, of the disk of DATA_DIR"],
    ["LOG_LEVEL", "loud", "it must be one of trace, debug, info, warn, error, fatal, silent"],
    ["DATABASE_URL", "db.example", DATABASE],
    ["DATABASE_URL", "hello", DATABASE],
    ["DATABASE_URL", "postgres://", DATABASE],
    ["NATS_URL", "hello", NATS],
    ["NATS_URL", "localhost:4222", NATS],
    ["NATS_URL", "http://127.0.0.1:4222", NATS],
    ["NATS_URL", "nats://", NATS],
    ["NATS_URL", "nats://127.0.0.1:99999", NATS],
    ["NATS_URL", "nats://one.example:4222,hello", NATS],
    ["NATS_URL", "nats://%zz@127.0.0.1:4222", NATS],
  ])("%s=%s", (name, value, allowed) => {
    expect(() => readSettings({ [name]: value })).toThrow(
      expect.objectContaining({
        code: "invalid_setting",
        exitCode: 1,
        message: `The setting ${name} is not usable: ${allowed}.`,
      }),
    );
  });

  test.each([8480, 8479, 8478, 8477, 8476])("METRICS_PORT=%i, whose five ports hold PORT", (first) => {
    expect(() => readSettings({ PORT: "8480", METRICS_PORT: String(first) })).toThrow(
      `The setting METRICS_PORT is not usable: metrics take the ports ${first} to ${first + 4}, and PORT is 8480; choose one above PORT, or at least 5 below it.`,
    );
  });
});

describe("usable settings", () => {
  test("an empty variable counts as not set", () => {
    expect(readSettings({ PORT: "", METRICS_PORT: "", DATABASE_URL: "", LOG_LEVEL: "" })).toMatchObject({
      port: 8480,
      host: "127.0.0.1",
      metricsPort: undefined,
      databaseUrl: undefined,
      logLevel: "info",
      logMaxBytes: 200 * 1_024 ** 2,
      diskReserveMb: 512,
    });
  });

  test.each([
    ["8481", [8481, 8482, 8483, 8484, 8485]],
    ["8475", [8475, 8476, 8477, 8478, 8479]],
    ["0", []],
    ["65531", [65_531, 65_532, 65_533, 65_534, 65_535]],
  ])("METRICS_PORT=%s beside PORT=8480 stands for these ports", (value, ports) => {
    expect(metricsPorts(readSettings({ PORT: "8480", METRICS_PORT: value }))).toEqual(ports);
  });

  test("any free port is no collision", () => {
    expect(readSettings({ PORT: "0", METRICS_PORT: "0" })).toMatchObject({ port: 0, metricsPort: 0 });
  });
});
