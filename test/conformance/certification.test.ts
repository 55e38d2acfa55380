/**
 * Certification artifacts by API and by command. The test sends the requests of the suite at a device itself, so that the audit
 * log has them within a second. In `npm run soak`, `certify` runs against a device.
 */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { DEVICE_CHECKS } from "../../clients/conformance/devices/checks.ts";
import { SUITE } from "../../clients/conformance/suite-version.ts";
import { partsOf, verifyCertificate } from "../../clients/verify-certificate.mjs";
import { closeDatabase, type Database, openDatabase } from "../../services/db/pool.ts";
import { REQUIRED_CHECKS } from "../../services/registry/certification/required-checks.ts";
import { sha256 } from "../../services/registry/certification/statements.ts";
import { newCode } from "../support/devices.ts";
import { type Answer, type Refused, send } from "../support/http.ts";
import { logIn, type Person } from "../support/people.ts";
import { programEnvironment, runProgram } from "../support/running-program.ts";
import { sharedSystem } from "../support/shared-system.ts";
import type { TestSystem } from "../support/system.ts";
import { type TemporaryFolder, temporaryFolder } from "../support/temporary-folder.ts";
import { enroll, footprint, resultOf, type Sandbox } from "./recorded-run.ts";

type Kind = "companion" | "display";
interface Artifact {
  readonly artifact_id: number;
  readonly capability: string;
  readonly leaf_index: number;
  readonly valid_until: string;
  readonly revocation: { readonly reason: string } | null;
}
interface Recorded {
  readonly certification_artifacts: readonly Artifact[];
}
interface Log {
  readonly name: string;
  readonly size: number;
  readonly checkpoint: string;
  readonly keys: readonly { readonly verifier_key: string }[];
}

let system: TestSystem;
let owner: Person;
let sql: Database;
let folder: TemporaryFolder;
beforeAll(async () => {
  system = await sharedSystem({ sandboxProvider: true });
  owner = await logIn(system.baseUrl, "backoffice", system.owner);
  sql = openDatabase({ url: system.database.url, name: "certification test", maxConnections: 1 });
  folder = temporaryFolder("certification");
});
afterAll(async () => {
  await closeDatabase(sql);
  await system.stop();
  folder.remove();
});

const record = (body: object): Promise<Recorded> => owner.good<Recorded>("POST", "certification-artifacts/", { body });
/** Reads the public log, and again while the throttle of this address refuses it. */
function sendToLog<T>(rest: string): Promise<Answer<T>> {
  return vi.waitFor(
    async () => {
      const answer = await send<T>(system.baseUrl, "GET", `/.well-known/certification-log/${rest}`);
      expect(answer.status).not.toBe(429);
      return answer;
    },
    { timeout: 30_000, interval: 250 },
  );
}
const readLog = async (): Promise<Log> => (await sendToLog<Log>("")).body;
const readConsistency = <T>(query: string): Promise<Answer<T>> => sendToLog<T>(`consistency/?${query}`);
const certificateOf = async ({ artifact_id: id }: Artifact): Promise<string> => {
  const path = `/api/backoffice/v1/certification-artifacts/${id}/certificate/`;
  return (await send(system.baseUrl, "GET", path, { token: owner.token })).text;
};
const verified = async (text: string) => {
  const { keys } = await readLog();
  return verifyCertificate({ ...partsOf(text), logKeys: keys.map(({ verifier_key: key }) => key) });
};

describe("the record of a run that has passed", () => {
  test("the checks that the service requires: those of the suite", () => {
    const kinds = { companion: "smart_pos_companion", display: "customer_display" } as const;
    for (const [kind, name] of Object.entries(kinds)) {
      const required = Object.entries(REQUIRED_CHECKS[name]).flatMap(([capability, ids]) =>
        ids.map((id) => `${capability} ${id}`),
      );
      const checks = DEVICE_CHECKS[kind as Kind].map(({ capability, id }) => `${capability} ${id}`);
      expect(required.toSorted()).toEqual(checks.toSorted());
    }
  });

  test("sent twice: recorded once, with one artifact for each capability, which the verifier accepts", async () => {
    const run = await footprint(system, owner, "companion");
    const body = { ...resultOf("companion", run), software_sha256: "ab".repeat(32), model: "P2" };
    const [first, second] = await Promise.all([record(body), record(body)]);
    expect(second).toEqual(first);
    const { certification_artifacts: artifacts } = first;
    expect(artifacts.map(({ capability }) => capability)).toEqual(["handoff_present", "outcome_report"]);
    for (const artifact of artifacts) {
      const { statement, index, isExpired, revocation } = await verified(await certificateOf(artifact));
      expect([index, isExpired, revocation]).toEqual([artifact.leaf_index, false, undefined]);
      expect(statement.subject).toEqual([{ name: "Acme P2 4.2.0", digest: { sha256: "ab".repeat(32) } }]);
      expect(statement.predicate).toMatchObject({
        provider: "Acme",
        capability: artifact.capability,
        validUntil: artifact.valid_until,
        suiteVersion: SUITE.version,
        device: { id: run.deviceId, softwareVersion: "4.2.0", digestOf: "build" },
        environment: "sandbox",
        vouchedBy: { role: "owner", userId: owner.userId },
        failedTests: [],
      });
      const openApi = await fetch(`${system.baseUrl}/openapi.json`);
      expect(statement.predicate.configuration).toContainEqual({
        name: "openapi.json",
        digest: { sha256: sha256(new Uint8Array(await openApi.arrayBuffer())) },
      });
      expect(statement.predicate.configuration).toContainEqual(
        expect.objectContaining({
          name: "options",
          annotations: { deviceKind: "smart_pos_companion", capabilities: ["handoff_present", "outcome_report"] },
        }),
      );
    }
    const [handoff] = artifacts.map(async (artifact) => (await verified(await certificateOf(artifact))).statement);
    expect(JSON.stringify((await handoff)?.predicate)).not.toContain("device.reports_success");
    const other = { ...body, software_version: "4.2.1" };
    const refused = await owner.refused("conflict", "POST", "certification-artifacts/", { body: other });
    expect(refused.body).toMatchObject({ reason: "run_recorded" });
  });

  test("a run of one capability: certifies only that capability", async () => {
    const run = await footprint(system, owner, "display");
    const { certification_artifacts: artifacts } = await record(resultOf("display", run, ["display_total"]));
    expect(artifacts.map(({ capability }) => capability)).toEqual(["display_total"]);
    const { certification_artifacts: listed } = await owner.good<Recorded>(
      "GET",
      "certification-artifacts/?capability=qr_dynamic_present&provider=Acme",
    );
    expect(listed).toEqual([]);
  });
});

test("a run that ended over an hour ago: a repetition gets the recorded artifacts, a first record is refused", async () => {
  const [recorded, late] = [await footprint(system, owner, "display"), await footprint(system, owner, "display")];
  const first = await record(resultOf("display", recorded));
  await sql.begin(async (tx) => {
    await tx`set local session_replication_role = replica`;
    await tx`
      update registry_events set at = at - interval '61 minutes'
      where subject_kind = 'station' and action = 'sandbox_reset' and subject_id in (
        select station_id from sandboxes where sandbox_id in (${recorded.sandboxId}, ${late.sandboxId}))`;
  });
  expect(await record(resultOf("display", recorded))).toEqual(first);
  const body = resultOf("display", late);
  const refused = await owner.refused("conflict", "POST", "certification-artifacts/", { body });
  expect(refused.body).toMatchObject({ reason: "run_too_old" });
});

test("a device that enrolls again after its run: a repetition gets the recorded artifacts", async () => {
  const run = await footprint(system, owner, "display");
  const first = await record(resultOf("display", run));
  // A fixed defect: the run was no longer found, and the repetition was refused.
  await enroll(system, await newCode(owner, run.deviceId));
  expect(await record(resultOf("display", run))).toEqual(first);
  await owner.good("POST", `sandboxes/${run.sandboxId}/reset/`);
  expect(await record(resultOf("display", run))).toEqual(first);
});

describe("the record of a run that gets no artifact", () => {
  type Body = ReturnType<typeof resultOf>;
  let run: Awaited<ReturnType<typeof footprint>>;
  beforeAll(async () => {
    run = await footprint(system, owner, "display");
  });
  const changed = (body: Body, change: (checks: Body["checks"]) => Body["checks"]): Body => ({
    ...body,
    checks: change(body.checks),
  });

  test.each<[string, string, (body: Body) => object]>([
    [
      "a failed check",
      "run_not_passed",
      (b) => changed(b, (c) => c.map((e, n) => (n === 20 ? { ...e, outcome: "failed" } : e))),
    ],
    [
      "a check that did not run",
      "run_not_passed",
      (b) => changed(b, (c) => c.map((e, n) => (n === 3 ? { ...e, outcome: "not_run" } : e))),
    ],
    ["something left behind", "run_not_passed", (b) => ({ ...b, left_behind: ["a credential is valid"] })],
    [
      "a missing check of its capability",
      "run_incomplete",
      (b) => changed(b, (c) => c.filter(({ id }) => id !== "device.shows_paid")),
    ],
    [
      "a missing check that each device needs",
      "run_incomplete",
      (b) => changed(b, (c) => c.filter(({ id }) => id !== "device.keeps_pace")),
    ],
    ["a check that was tried twice", "run_incomplete", (b) => changed(b, (c) => [...c, ...c.slice(0, 1)])],
    ["no capability of the device", "run_incomplete", (b) => changed(b, (c) => c.slice(0, 0))],
    [
      "the checks of another kind of device",
      "run_incomplete",
      (b) => ({ ...b, checks: resultOf("companion", run).checks }),
    ],
    ["another version of the suite", "suite_differs", (b) => ({ ...b, suite_version: "0.1.9" })],
    ["another contract", "suite_differs", (b) => ({ ...b, contract_sha256: "cd".repeat(32) })],
  ])("%s: refused as %s", async (_, reason, change) => {
    const before = await readLog();
    const body = change(resultOf("display", run));
    const refused = await owner.refused("conflict", "POST", "certification-artifacts/", { body });
    expect(refused.body).toMatchObject({ reason });
    expect(await readLog()).toEqual(before);
  });

  test("a run that is not in the audit log: refused, because a result alone proves nothing", async () => {
    const { sandbox_id: sandboxId } = await owner.good<Sandbox>("POST", "sandboxes/", {
      body: { filial_id: system.sandbox.filialId, name: "Unseen", currency: "EUR" },
    });
    const unseen = await owner.good<Sandbox>("POST", `sandboxes/${sandboxId}/reset/`);
    await enroll(system, unseen.display.enrollment_code);
    await owner.good("POST", `sandboxes/${sandboxId}/reset/`);
    const body = resultOf("display", { sandboxId, deviceId: unseen.display.device_id });
    const refused = await owner.refused("conflict", "POST", "certification-artifacts/", { body });
    expect(refused.body).toMatchObject({ reason: "run_not_seen" });
    const theirs = { ...body, device_id: run.deviceId };
    await owner.refused("not_found", "POST", "certification-artifacts/", { body: theirs });
  });

  test("a record without a session, or from a cashier: refused", async () => {
    const path = "/api/backoffice/v1/certification-artifacts/";
    const json = resultOf("display", run);
    expect((await send(system.baseUrl, "POST", path, { json })).status).toBe(401);
    const cashier = await logIn(system.baseUrl, "cashier", system.cashier);
    expect((await send(system.baseUrl, "POST", path, { json, token: cashier.token })).status).toBe(403);
  });
});

describe("the log of certificates", () => {
  test("a revocation: is a new leaf, which the newest certificate has; the old leaf stays", async () => {
    const run = await footprint(system, owner, "display");
    const { certification_artifacts: artifacts } = await record(resultOf("display", run));
    const [artifact, other] = artifacts as [Artifact, Artifact];
    const before = await readLog();
    const earlier = await certificateOf(artifact);
    const path = `certification-artifacts/${artifact.artifact_id}/revoke/`;
    const revoke = (reason: string) => owner.good<Artifact>("POST", path, { body: { reason } });
    const [one, two] = await Promise.all([revoke("A defect."), revoke("A defect.")]);
    expect(two).toEqual(one);
    expect(await revoke("Another reason.")).toMatchObject({ revocation: { reason: "A defect." } });
    const after = await readLog();
    expect(after.size).toBe(before.size + 1);
    expect((await verified(await certificateOf(artifact))).revocation).toMatchObject({ reason: "A defect." });
    expect((await verified(earlier)).revocation).toBeUndefined();
    expect((await verified(await certificateOf(other))).revocation).toBeUndefined();
    expect(partsOf(await certificateOf(artifact)).envelope).toBe(partsOf(earlier).envelope);
  });

  test("each later checkpoint: consistent with each earlier one, as any reader can check", async () => {
    const { size } = await readLog();
    expect(size).toBeGreaterThanOrEqual(6);
    for (const [from, to] of [
      [1, size],
      [2, 3],
      [3, size],
      [size - 1, size],
      [size, size],
    ] as const) {
      const { body } = await readConsistency<{ from: string; to: string; hashes: string[] }>(`from=${from}&to=${to}`);
      const [, fromSize, fromRoot] = body.from.split("\n");
      const [, toSize, toRoot] = body.to.split("\n");
      expect([Number(fromSize), Number(toSize)]).toEqual([from, to]);
      expect(consistentRoots(from, to, body.hashes, fromRoot ?? "")).toEqual([fromRoot, toRoot]);
    }
    for (const query of ["from=0&to=1", `from=1&to=${size + 1}`, "from=3&to=2"]) {
      const answer = await readConsistency<Refused>(query);
      expect([answer.status, answer.body.code]).toEqual([400, "invalid_request"]);
    }
  });

  test.each([
    ["certification_log", "envelope"],
    ["certification_artifacts", "provider"],
    ["certification_keys", "key_id"],
    ["certification_revocations", "reason"],
  ])("the table %s: rejects update, delete and truncate", async (table, column) => {
    await expect(sql`update ${sql(table)} set ${sql(column)} = ${sql(column)}`).rejects.toThrow("never change");
    await expect(sql`delete from ${sql(table)}`).rejects.toThrow("never change");
    await expect(sql`truncate ${sql(table)} cascade`).rejects.toThrow("never change");
  });

  test("a role that is not a superuser: has no right to change the log, also without the triggers", async () => {
    const rows = await sql<{ privilege_type: string }[]>`
      select privilege_type from pg_class, aclexplode(relacl) where relname = 'certification_log' and grantee = relowner`;
    const rights = rows.map(({ privilege_type: right }) => right);
    expect(rights).toContain("INSERT");
    for (const right of ["UPDATE", "DELETE", "TRUNCATE"]) expect(rights).not.toContain(right);
  });
});

describe("npm run cli -- certificate", () => {
  const CLI = join(import.meta.dirname, "..", "..", "clients", "cli.ts");
  async function cli(...args: readonly string[]) {
    const { email: OWNER_EMAIL, password: OWNER_PASSWORD } = system.owner;
    const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path, OWNER_EMAIL, OWNER_PASSWORD };
    // npm starts a command with an open channel to the parent, which must not keep the command running.
    const program = runProgram(process.execPath, [CLI, ...args], {
      env: programEnvironment(access),
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    return { code: await program.ended, output: program.output() };
  }

  test("download, verify, revoke: 0 valid, 1 not valid, 2 revoked; by the published keys and offline", async () => {
    const run = await footprint(system, owner, "display");
    const { certification_artifacts: artifacts } = await record(resultOf("display", run));
    const id = String(artifacts[0]?.artifact_id);
    const { output } = await cli("certificate", "download", id, "--output", folder.path, "--json");
    const { file } = JSON.parse(output) as { file: string };
    const [{ verifier_key: key }] = (await readLog()).keys as [{ verifier_key: string }];
    const [asked, offline, listed] = await Promise.all([
      cli("certificate", "verify", file),
      cli("certificate", "verify", file, "--key", key, "--json", "--base-url", "http://127.0.0.1:9"),
      cli("certificate", "list"),
    ]);
    expect(asked).toMatchObject({ code: 0, output: expect.stringContaining("It does not prove:") as string });
    expect([offline.code, (JSON.parse(offline.output) as { valid: boolean }).valid]).toEqual([0, true]);
    expect(listed.output).toContain(`${id}: Acme 4.2.0, display_total, until`);
    const forged = join(folder.path, "forged.json");
    writeFileSync(forged, readFileSync(file, "utf8").replace("envelope", "Envelope"));
    const revoked = await cli("certificate", "revoke", id, "--reason", "A defect.");
    expect(revoked).toMatchObject({ code: 0, output: expect.stringContaining("revoked: A defect.") as string });
    await cli("certificate", "download", id, "--output", folder.path);
    const [again, wrong] = await Promise.all([
      cli("certificate", "verify", file),
      cli("certificate", "verify", forged, "--key", key),
    ]);
    expect(again).toMatchObject({ code: 2, output: expect.stringContaining("Revoked at") as string });
    expect(wrong).toEqual({ code: 1, output: "Not valid: The file is not a certificate.\n" });
  });

  test.each([
    [["certify", "--sandbox", "1", "--device", "display", "--software", "1"], "Give --provider; see --help."],
    [["certify", "--sandbox", "1", "--device", "display", "--provider", "Acme"], "Give --software; see --help."],
    [["certificate"], "Use certificate list, download, revoke or verify; see --help."],
  ])("%j: exit code 2 and a sentence", async (args, sentence) => {
    expect(await cli(...args)).toEqual({ code: 2, output: `${sentence}\n` });
  });

  test("verify that cannot begin: exit code 1, because 2 means revoked or expired", async () => {
    for (const args of [[], ["a.json", "b.json"], ["a.json", "--kye", "k"]])
      expect(await cli("certificate", "verify", ...args)).toMatchObject({ code: 1 });
  });

  test("certify whose output is closed: ends, and its session has ended", async () => {
    const { sandboxId } = await footprint(system, owner, "display");
    const [before] = await sql<
      [{ ids: number[] }]
    >`select array_agg(session_id) as ids from sessions where ended_at is null`;
    const { email: OWNER_EMAIL, password: OWNER_PASSWORD } = system.owner;
    const access = { BASE_URL: system.baseUrl, DATA_DIR: folder.path, OWNER_EMAIL, OWNER_PASSWORD };
    const whose = ["--device", "display", "--provider", "Acme", "--software", "1", "--program", "false"];
    const args = [CLI, "certify", "--sandbox", String(sandboxId), ...whose];
    const program = runProgram(process.execPath, args, { env: programEnvironment(access) });
    program.process.stdout?.destroy();
    expect([await program.ended, program.output()]).toEqual([1, ""]);
    expect(await sql`select array_agg(session_id) as ids from sessions where ended_at is null`).toEqual([before]);
  });

  const AT_NO_SANDBOX = ["certify", "--sandbox", "999", "--device", "display", "--provider", "Acme", "--software", "1"];
  test.each([
    ["an unknown sandbox is named, and the run does not begin", [], /sandbox/i],
    [
      "a missing folder is named before the run",
      ["--output", "/no/folder"],
      /^No file can be written into \/no\/folder: /,
    ],
    [
      "a missing folder for the result is named before the run",
      ["--json-file", "/no/folder/result.json"],
      /^No file can be written into \/no\/folder: /,
    ],
  ])("certify: %s", async (_what, options, sentence) => {
    expect(await cli(...AT_NO_SANDBOX, "--program", "false", ...options)).toEqual({
      code: 2,
      output: expect.stringMatching(sentence) as string,
    });
  });
});

/** A second implementation of consistency proofs (RFC 9162, section 2.1.4.2): returns the computed roots. */

const node = (left: Buffer, right: Buffer): Buffer =>
  createHash("sha256").update(Buffer.of(1)).update(left).update(right).digest();

/** Returns the roots of the smaller and the larger log. Hashes and roots are in base64. */
function consistentRoots(
  from: number,
  to: number,
  hashes: readonly string[],
  fromRoot: string,
): readonly [string, string] {
  const path = hashes.map((hash) => Buffer.from(hash, "base64"));
  if (from === to) return [fromRoot, fromRoot];
  // If the smaller log is a complete subtree, its root begins the path.
  if ((from & (from - 1)) === 0) path.unshift(Buffer.from(fromRoot, "base64"));
  let [fn, sn] = [from - 1, to - 1];
  while (fn % 2 === 1) [fn, sn] = [fn >> 1, sn >> 1];
  const [first, ...rest] = path as [Buffer, ...Buffer[]];
  let [fr, sr] = [first, first];
  for (const hash of rest) {
    if (fn % 2 === 1 || fn === sn) {
      [fr, sr] = [node(hash, fr), node(hash, sr)];
      while (fn % 2 === 0 && fn !== 0) [fn, sn] = [fn >> 1, sn >> 1];
    } else sr = node(sr, hash);
    [fn, sn] = [fn >> 1, sn >> 1];
  }
  return [fr.toString("base64"), sr.toString("base64")];
}
