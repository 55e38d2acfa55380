/** `npm start` checks all settings before it starts anything: it names the variable and what is allowed, never the value. */

import { generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { metricsPorts, readSettings } from "../../deploy/settings.ts";
import { selfSigned } from "../support/certificates.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const PORT = "it must be a whole number from 0 to 65535, where 0 takes any free port";
const METRICS =
  "it must be a whole number from 0 to 65531, because the four ports after it are used, too; 0 takes any free ports";

const DATABASE = "it must be an address like postgres://user:password@host:5432/database";
const NATS =
  "it must be an address like nats://token@127.0.0.1:4222, or several separated by commas, with percent escapes for special characters of user and password";

describe("npm start: an unusable setting", () => {
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
  ])("%s=%s: the error names the variable and what is allowed", (name, value, allowed) => {
    expect(() => readSettings({ [name]: value })).toThrow(
      expect.objectContaining({
        code: "invalid_setting",
        exitCode: 1,
        message: `The setting ${name} is not usable: ${allowed}.`,
      }),
    );
  });

  test.each([8480, 8479, 8478, 8477, 8476])("METRICS_PORT=%i, whose five ports hold PORT: it is refused", (first) => {
    expect(() => readSettings({ PORT: "8480", METRICS_PORT: String(first) })).toThrow(
      `The setting METRICS_PORT is not usable: metrics take the ports ${first} to ${first + 4}, and PORT is 8480; choose one above PORT, or at least 5 below it.`,
    );
  });
});

describe("npm start: usable settings", () => {
  test("an empty variable: it counts as not set", () => {
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
  ])("METRICS_PORT=%s beside PORT=8480: it means these ports", (value, ports) => {
    expect(metricsPorts(readSettings({ PORT: "8480", METRICS_PORT: value }))).toEqual(ports);
  });

  test("PORT=0 and METRICS_PORT=0: both mean any free port", () => {
    expect(readSettings({ PORT: "0", METRICS_PORT: "0" })).toMatchObject({ port: 0, metricsPort: 0 });
  });
});

const folder = temporaryFolder("part-settings");
afterAll(folder.remove);

const fileWith = (name: string, text: string): string => {
  const path = join(folder.path, name);
  writeFileSync(path, text);
  return path;
};

function encryptedKey(type: "pkcs8" | "pkcs1" = "pkcs8"): string {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  return privateKey.export({ type, format: "pem", cipher: "aes-256-cbc", passphrase: "test" }).toString();
}

const KEY = "it must be 32 random bytes in base64url (43 characters)";

describe("npm start: a setting that only a part reads", () => {
  test.each([
    ["TRUSTED_PROXIES", "foo", "it must list addresses or blocks like 10.0.0.0/8, separated by commas"],
    ["SHARED_PORT", "maybe", "it must be true or false"],
    ["MAX_CONNECTIONS", "0", "it must be a whole number from 1 to 1000000"],
    ["PLATFORM_KEY", "short", "it must be a key of 32 to 256 random characters"],
    ["PLATFORM_KEY", `${"k".repeat(40)} ${"k".repeat(40)}`, "it must be a key of ASCII characters without spaces"],
    ["STATION_LEASE_MS", "99999999", "it must be a whole number from 1000 to 3600000"],
    ["AUDIT_EVENT_RETENTION_DAYS", "ten", "it must be a whole number from 1 to 36500"],
    ["ENROLLMENT_CODE_KEY", "short", "it must have at least 16 characters"],
    ["PROVIDER_SECRETS_KEY", "short", KEY],
    ["PROVIDER_SECRETS_OLD_KEYS", "short", KEY],
    ["PROVIDER_CALLBACK_BASE_URL", "pay", "it must be an address like https://payments.example.com"],
    ["SANDBOX_PROVIDER_KEY", "short", KEY],
    ["SANDBOX_PROVIDER_DECIDES_AFTER_MS", "-1", "it must be a whole number from 0 to 600000"],
    ["ROBOTICS_TASK_RETENTION_DAYS", "0", "it must be a whole number from 1 to 3650"],
    ["WEBHOOK_SECRETS_KEY", "short", KEY],
    ["WEBHOOK_CA_FILE", "/nope", "it must name a file of certificates in PEM"],
    ["WEBHOOK_DNS_SERVERS", "one.example", "each must be an address or address:port"],
    ["WEBHOOK_OWN_NETWORKS", "10.0.0.0/99", "each must be an address or a block like 192.0.2.0/24"],
  ])("%s=%s: it is refused before anything starts", (name, value, rule) => {
    expect(() => readSettings({ [name]: value })).toThrow(
      expect.objectContaining({
        code: "invalid_setting",
        exitCode: 1,
        message: `The setting ${name} is not usable: ${rule}.`,
      }),
    );
  });

  test("WEBHOOK_CA_FILE without a certificate: it is refused", () => {
    const file = fileWith("no-authority.pem", "hello\n");
    expect(() => readSettings({ WEBHOOK_CA_FILE: file })).toThrow(
      "The setting WEBHOOK_CA_FILE is not usable: it must name a file of certificates in PEM.",
    );
  });

  test("a secret that npm start can make: it needs no value, and an empty value counts as not set", () => {
    expect(readSettings({ PROVIDER_SECRETS_KEY: "", WEBHOOK_SECRETS_KEY: "" })).toMatchObject({ tls: undefined });
  });
});

describe("npm start: the files of TLS", () => {
  const good = selfSigned({ names: ["127.0.0.1"] });
  const other = selfSigned({ names: ["127.0.0.1"] });
  const certFile = fileWith("cert.pem", good.cert);
  const keyFile = fileWith("key.pem", good.key);
  const start = (files: { TLS_CERT_FILE?: string; TLS_KEY_FILE?: string }) => () =>
    readSettings({ TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, ...files });

  test("a good certificate and its key: they are used", () => {
    expect(start({})().tls).toEqual({ certFile, keyFile });
  });

  test("a certificate without a key, or a key without a certificate: refused", () => {
    const rule = "The setting TLS_KEY_FILE is not usable: set TLS_KEY_FILE and TLS_CERT_FILE together.";
    expect(() => readSettings({ TLS_CERT_FILE: certFile })).toThrow(rule);
    expect(() => readSettings({ TLS_KEY_FILE: keyFile })).toThrow(rule);
  });

  test.each<[string, { TLS_CERT_FILE?: string; TLS_KEY_FILE?: string }, string]>([
    [
      "a missing certificate",
      { TLS_CERT_FILE: "/nope.pem" },
      "TLS_CERT_FILE is not usable: there is no such file or folder (ENOENT); correct the path",
    ],
    [
      "a missing key",
      { TLS_KEY_FILE: "/nope.pem" },
      "TLS_KEY_FILE is not usable: there is no such file or folder (ENOENT); correct the path",
    ],
    [
      "a folder",
      { TLS_CERT_FILE: folder.path },
      "TLS_CERT_FILE is not usable: the path leads to a folder and not to a file (EISDIR); correct the path",
    ],
    [
      "a key in place of the certificate",
      { TLS_CERT_FILE: keyFile },
      "TLS_CERT_FILE is not usable: the file holds a private key and no certificate",
    ],
    [
      "a certificate in place of the key",
      { TLS_KEY_FILE: certFile },
      "TLS_KEY_FILE is not usable: the file holds a certificate and no private key",
    ],
    [
      "a file of something else as the certificate",
      { TLS_CERT_FILE: fileWith("hello.pem", "hello\n") },
      "TLS_CERT_FILE is not usable: the file holds no certificate in PEM",
    ],
    [
      "a file of something else as the key",
      { TLS_KEY_FILE: fileWith("hello.pem", "hello\n") },
      "TLS_KEY_FILE is not usable: the file holds no private key in PEM",
    ],
    [
      "a damaged certificate",
      { TLS_CERT_FILE: fileWith("damaged.pem", good.cert.replace(/\n.{20}/, "\nAAAAAAAAAAAAAAAAAAAA")) },
      "TLS_CERT_FILE is not usable: the file holds a damaged certificate",
    ],
    [
      "a damaged certificate after a good one",
      { TLS_CERT_FILE: fileWith("chain.pem", good.cert + other.cert.replace(/\n.{20}/, "\nAAAAAAAAAAAAAAAAAAAA")) },
      "TLS_CERT_FILE is not usable: the file holds a damaged certificate",
    ],
    [
      "a key with a passphrase",
      { TLS_KEY_FILE: fileWith("encrypted-key.pem", encryptedKey()) },
      "TLS_KEY_FILE is not usable: its private key needs a passphrase; store it without one",
    ],
    [
      "an older kind of key with a passphrase",
      { TLS_KEY_FILE: fileWith("old-encrypted-key.pem", encryptedKey("pkcs1")) },
      "TLS_KEY_FILE is not usable: its private key needs a passphrase; store it without one",
    ],
    [
      "a damaged key",
      { TLS_KEY_FILE: fileWith("damaged-key.pem", good.key.replace(/\n.{20}/, "\nAAAAAAAAAAAAAAAAAAAA")) },
      "TLS_KEY_FILE is not usable: the file holds a damaged private key",
    ],
    [
      "a key of another certificate",
      { TLS_KEY_FILE: fileWith("other-key.pem", other.key) },
      "TLS_KEY_FILE is not usable: its private key does not belong to the certificate in TLS_CERT_FILE",
    ],
  ])("%s: one sentence with the setting and the reason", (_what, files, rule) => {
    expect(start(files)).toThrow(expect.objectContaining({ code: "invalid_setting", message: `The setting ${rule}.` }));
  });

  test("a certificate with its chain: it is used", () => {
    const chain = fileWith("good-chain.pem", good.cert + other.cert);
    expect(start({ TLS_CERT_FILE: chain })().tls?.certFile).toBe(chain);
    expect(readFileSync(chain, "utf8")).toContain(other.cert);
  });
});
