/** `certify` runs the suite at a device and records the result; `certificate` lists, downloads, revokes and verifies. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { CommandError, checkFolder, findService, parseCommandLine, UsageError, writeText } from "../command.ts";
import {
  endWithoutResult,
  exitCodeOf,
  type Options,
  OPTIONS as RUN_OPTIONS,
  runOnce,
  writeResult,
} from "../conformance/command.ts";
import type { DeviceRunResult } from "../conformance/devices/device-suite.ts";
import { SUITE } from "../conformance/suite-version.ts";
import { noAnswer } from "../http/no-answer.ts";
import { trustCertificate } from "../http/transport.ts";
import { clientLimits } from "../limits.ts";
import { ACCESS_OPTIONS, asPerson, idOf, type Person, print, printJson, queryOf, required } from "../person.ts";
import { NOT_PROVEN, NotValid, partsOf, sentenceOf, verifyCertificate } from "../verify-certificate.mjs";

export const CERTIFY_HELP = `  npm run cli -- certify --sandbox ID --device companion|display --provider NAME --software VERSION
      Checks a device as conformance --device does, and records a certificate for each
      capability when all checks have passed. Its options are those of conformance, and
      --output FOLDER     writes the certificates there; the current folder when left out
      Exit codes: those of conformance; 2 also when the service records nothing
`;
export const CERTIFICATE_HELP = `  npm run cli -- certificate list
      --provider NAME, --capability NAME, --before-id ID
  npm run cli -- certificate download ARTIFACT
      --output FOLDER     writes it there; the current folder when left out
  npm run cli -- certificate revoke ARTIFACT --reason TEXT
  npm run cli -- certificate verify FILE
      Offline with --key KEY, the verifier key of the installation, which may be repeated;
      without it the keys are read from the installation, and trusted
      Exit codes: 0 valid, 1 not valid or not verified, 2 revoked or expired
`;

const artifactSchema = z.looseObject({
  artifact_id: z.int(),
  provider: z.string(),
  capability: z.string(),
  software_version: z.string(),
  valid_until: z.string(),
  revocation: z.looseObject({ reason: z.string() }).nullable(),
});
type Artifact = z.infer<typeof artifactSchema>;
const artifactsSchema = z.looseObject({ certification_artifacts: z.array(artifactSchema) });
const pageSchema = artifactsSchema.extend({ has_more: z.boolean() });
const certificateSchema = z.looseObject({ envelope: z.string(), proof: z.string() });

const ROOT = "certification-artifacts/";

/** Sets the exit code. */
export async function runCertify(args: readonly string[]): Promise<void> {
  try {
    const { values, positionals } = parseCommandLine(args, { ...RUN_OPTIONS, output: { type: "string" } });
    if (positionals[0] !== undefined)
      throw new UsageError(`There is one argument too many, "${positionals[0]}"; see --help.`);
    required(values.device, "--device");
    required(values.provider, "--provider");
    required(values.software, "--software");
    checkFolder(values.output ?? ".");
    // The run ends its own session. The result is recorded afterwards, so this needs another session.
    const { SESSION_TOKEN: session } = process.env;
    if (session) throw new UsageError("certify needs the owner's log-in, and not SESSION_TOKEN.");
    const result = (await runOnce(values)) as DeviceRunResult;
    writeResult(result, values);
    process.exitCode = exitCodeOf(result);
    if (process.exitCode === 0) await asPerson("owner", values, (owner) => record(owner, result, values));
  } catch (error) {
    endWithoutResult(error);
  }
}

async function record(
  owner: Person,
  result: DeviceRunResult,
  values: Options & { readonly output?: string | undefined },
): Promise<void> {
  const { software, results, leftBehind, deviceId } = result;
  const body = {
    sandbox_id: idOf(values.sandbox, "--sandbox"),
    device_id: deviceId,
    provider: software.provider,
    ...(software.model === null ? {} : { model: software.model }),
    software_version: software.version,
    ...(software.sha256 === null ? {} : { software_sha256: software.sha256 }),
    suite_version: SUITE.version,
    suite_sha256: SUITE.sha256(),
    contract_sha256: SUITE.contractSha256(),
    checks: results.map(({ id, outcome, durationMs }) => ({ id, outcome, duration_ms: durationMs })),
    left_behind: leftBehind,
  };
  const { certification_artifacts: artifacts } = await owner.act(ROOT, body, artifactsSchema);
  for (const artifact of artifacts) {
    const file = await download(owner, artifact.artifact_id, values.output);
    if (values.json === true) printJson({ certified: artifact, file });
    else print(`Certified: ${lineOf(artifact)}. ${file}`);
  }
}

async function download(owner: Person, artifactId: number, folder = "."): Promise<string> {
  const certificate = await owner.read(`${ROOT}${artifactId}/certificate/`, certificateSchema);
  const file = join(folder, `certificate-${artifactId}.json`);
  writeText(file, JSON.stringify(certificate));
  return file;
}

function lineOf({ provider, capability, software_version: version, valid_until: until, revocation }: Artifact): string {
  const end = revocation === null ? `until ${until}` : `revoked: ${revocation.reason}`;
  return `${provider} ${version}, ${capability}, ${end}`;
}

const CERTIFICATE_OPTIONS = {
  ...ACCESS_OPTIONS,
  provider: { type: "string" },
  capability: { type: "string" },
  "before-id": { type: "string" },
  output: { type: "string" },
  reason: { type: "string" },
  key: { type: "string", multiple: true },
} as const;
type CertificateOptions = ReturnType<typeof parseCommandLine<typeof CERTIFICATE_OPTIONS>>["values"];

/** Throws `UsageError` when the arguments cannot be understood, and `CommandError` when the service refuses. */
export async function runCertificate(args: readonly string[]): Promise<void> {
  try {
    const { values, positionals } = parseCommandLine(args, CERTIFICATE_OPTIONS);
    const [command, what, surplus] = positionals;
    if (surplus !== undefined) throw new UsageError(`There is one argument too many, "${surplus}"; see --help.`);
    if (command === "verify") return await verify(required(what, "the file of a certificate"), values);
    await asPerson("owner", values, personsWork(command, what, values));
  } catch (error) {
    // Exit code 2 of `verify` is a certificate that is revoked or expired.
    throw error instanceof UsageError && args.includes("verify") ? new CommandError(error.message) : error;
  }
}

function personsWork(
  command: string | undefined,
  what: string | undefined,
  values: CertificateOptions,
): (owner: Person) => Promise<void> {
  switch (command) {
    case "list":
      return (owner) => list(owner, values);
    case "download": {
      const artifactId = idOf(what, "the id of an artifact");
      return async (owner) => {
        const file = await download(owner, artifactId, values.output);
        if (values.json === true) printJson({ file });
        else print(file);
      };
    }
    case "revoke": {
      const artifactId = idOf(what, "the id of an artifact");
      const reason = required(values.reason, "--reason");
      return async (owner) => {
        const artifact = await owner.act(`${ROOT}${artifactId}/revoke/`, { reason }, artifactSchema);
        if (values.json === true) printJson(artifact);
        else print(`${artifactId}: ${lineOf(artifact)}`);
      };
    }
    case undefined:
    default:
      throw new UsageError("Use certificate list, download, revoke or verify; see --help.");
  }
}

async function list(owner: Person, values: CertificateOptions): Promise<void> {
  const { provider, capability, "before-id": beforeId } = values;
  const query = queryOf({ provider, capability, before_id: beforeId, limit: clientLimits.listedRows });
  const found = await owner.read(`${ROOT}${query}`, pageSchema);
  if (values.json === true) return printJson(found);
  const { certification_artifacts: artifacts, has_more: hasMore } = found;
  for (const artifact of artifacts) print(`${artifact.artifact_id}: ${lineOf(artifact)}`);
  if (hasMore) print(`There are more: --before-id ${artifacts.at(-1)?.artifact_id}`);
}

/** Sets the exit code. */
async function verify(file: string, values: CertificateOptions): Promise<void> {
  // The exit code is the result, also when the reader of the output has ended.
  process.stdout.on("error", () => undefined);
  const text = textOf(file);
  const logKeys = values.key ?? (await publishedKeys(values["base-url"]));
  try {
    const verified = await verifyCertificate({ ...partsOf(text), logKeys });
    const isPast = verified.isExpired || verified.revocation !== undefined;
    const { statement, index, isExpired, revocation } = verified;
    if (values.json === true) {
      const facts = { statement, leaf_index: index, is_expired: isExpired, revocation: revocation ?? null };
      printJson({ valid: !isPast, ...facts, not_proven: NOT_PROVEN });
    } else {
      print(`${sentenceOf(verified)}\nIt does not prove:`);
      for (const line of NOT_PROVEN) print(`  - ${line}`);
    }
    process.exitCode = isPast ? 2 : 0;
  } catch (error) {
    if (!(error instanceof NotValid)) throw error;
    if (values.json === true) printJson({ valid: false, because: error.message });
    else process.stderr.write(`Not valid: ${error.message}\n`);
    process.exitCode = 1;
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw new CommandError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}.`);
  }
}

const logSchema = z.object({ keys: z.array(z.object({ verifier_key: z.string() })) });

async function publishedKeys(option: string | undefined): Promise<readonly string[]> {
  const { baseUrl, certificateFile } = findService(option, process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  const url = `${baseUrl}/.well-known/certification-log/`;
  const signal = AbortSignal.timeout(clientLimits.requestTimeoutMs);
  const ask = () =>
    fetch(url, { signal, redirect: "error" }).catch((error: unknown) => {
      throw new CommandError(`${noAnswer(url, error)} Or give the keys with --key.`, { cause: error });
    });
  try {
    let response = await ask();
    // Other clients at this address have used up its rate, so the command repeats the request after a wait.
    while (response.status === 429) {
      await delay(Number(response.headers.get("retry-after") ?? 1) * 1_000, undefined, { signal });
      response = await ask();
    }
    return logSchema.parse(await response.json()).keys.map(({ verifier_key: key }) => key);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`The keys cannot be read at ${url}; give them with --key.`, { cause: error });
  }
}
