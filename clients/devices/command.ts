/** `devices enroll|watch|report|simulate`: the actions of a device, for developers of devices. They use the device kit. */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { CommandError, checkFolder, findService, parseCommandLine, UsageError } from "../command.ts";
import { createDeviceClient, OUTCOMES, type OutcomeWord } from "../device-kit/client.ts";
import { companion } from "../device-kit/companion.ts";
import type { DeviceState } from "../device-kit/device-machine.ts";
import { display } from "../device-kit/display.ts";
import { hostPlatform, type Platform } from "../device-kit/platform.ts";
import { type DeviceRecord, readRecord } from "../device-kit/record.ts";
import type { Device } from "../device-kit/run-device.ts";
import { fileStorage } from "../device-kit/storage/file.ts";
import { createTransport, type Failure } from "../device-kit/transport.ts";
import { noAnswer } from "../http/no-answer.ts";
import { trustCertificate } from "../http/transport.ts";
import { idOf, print, printJson, required } from "../person.ts";

export const DEVICES_HELP = `  npm run cli -- devices enroll --code CODE --file FILE
      Claims an enrollment code and writes the credential to the file
  npm run cli -- devices watch --file FILE
      A customer display: prints what it shows, until it is ended
      --code CODE         enrolls first, when the file has no credential
  npm run cli -- devices simulate --file FILE
      A companion: makes each collection and reports it, until it is ended
      --code CODE         as above
      --outcome WORD      reported_success, reported_declined, reported_cancelled or
                          reported_unknown; reported_success when it is left out
      --seconds N         how long a payment takes; 1 when it is left out
  npm run cli -- devices report --file FILE --intent ID --outcome WORD
      Reports one outcome
      --reference TEXT, --provider-code TEXT, --key KEY
`;
const OPTIONS = {
  json: { type: "boolean" },
  "base-url": { type: "string" },
  file: { type: "string" },
  code: { type: "string" },
  intent: { type: "string" },
  outcome: { type: "string" },
  reference: { type: "string" },
  "provider-code": { type: "string" },
  key: { type: "string" },
  seconds: { type: "string" },
} as const;
type Options = ReturnType<typeof parseCommandLine<typeof OPTIONS>>["values"];

/** Throws `UsageError` when the arguments cannot be understood, and `CommandError` when the service refuses. */
export async function runDevices(args: readonly string[]): Promise<void> {
  const { values, positionals } = parseCommandLine(args, OPTIONS);
  const [command, surplus] = positionals;
  if (surplus !== undefined) throw new UsageError(`There is one argument too many, "${surplus}"; see --help.`);
  switch (command) {
    case "enroll":
      return await enroll(values);
    case "watch":
      return await watch(values);
    case "simulate":
      return await simulate(values);
    case "report":
      return await report(values);
    case undefined:
    default:
      throw new UsageError("Use devices enroll, watch, simulate or report; see --help.");
  }
}

/** The service that the options name; also makes the process trust its certificate. */
function serviceOf(options: Options): string {
  const { baseUrl, certificateFile } = findService(options["base-url"], process.env);
  if (certificateFile !== undefined) trustCertificate(certificateFile);
  return baseUrl;
}

/** The sentences of `noAnswer` in this run, which need no further words. */
const reasons = new Set<string>();

const host = hostPlatform();
const platform: Platform = {
  ...host,
  fetch: (url, init) =>
    host.fetch(url, init).catch((error: unknown) => {
      const reason = noAnswer(url, error);
      reasons.add(reason);
      throw new Error(reason, { cause: error });
    }),
};

function clientOf(options: Options) {
  return createDeviceClient(createTransport({ baseUrl: serviceOf(options), platform }));
}

function sentenceOf({ detail, code }: Failure): CommandError {
  if (code !== "no_answer") return new CommandError(`${detail} (${code})`);
  if (reasons.has(detail)) return new CommandError(detail);
  const reason = detail.replace(/\.$/, "");
  return new CommandError(`The service does not answer (${reason}); check --base-url and that it runs.`);
}

/** The folder, or its nearest existing parent: the storage creates the missing folders. */
const existingFolder = (folder: string): string => (existsSync(folder) ? folder : existingFolder(dirname(folder)));

async function enroll(options: Options): Promise<void> {
  const code = required(options.code, "--code");
  const file = required(options.file, "--file");
  // The first answer spends the code, so the command first checks that it can store the credential.
  checkFolder(existingFolder(dirname(file)));
  const storage = fileStorage(file);
  const earlier = await storage.read().then(readRecord);
  const result = await clientOf(options).enroll(code);
  if (!result.ok) throw sentenceOf(result.failure);
  const { credential, device } = result.value;
  const isSame = earlier !== null && earlier !== "damaged" && earlier.device_id === device.device_id;
  const record: DeviceRecord = {
    device_id: device.device_id,
    credential,
    accepted: result.isEffective,
    first_poll_pending: true,
    // The same device reports them under its new credential.
    attempt: isSame ? earlier.attempt : null,
    reports: isSame ? earlier.reports : [],
  };
  await storage.write(JSON.stringify(record)).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError(`The credential is lost (${why}): make room, reset the device, and issue another code.`);
  });
  if (options.json === true) printJson({ device, file });
  else print(`Device ${device.device_id}, "${device.name}", is enrolled; its credential is in ${file}.`);
}

async function report(options: Options): Promise<void> {
  const file = required(options.file, "--file");
  const intentId = idOf(options.intent, "--intent");
  const outcome = outcomeOf(required(options.outcome, "--outcome"));
  const client = clientOf(options);
  const record = await fileStorage(file).read().then(readRecord);
  if (record === null || record === "damaged")
    throw new CommandError(`There is no credential in ${file}; enroll first.`);
  client.use(record.credential);
  const key = options.key ?? randomUUID();
  const result = await client.report({
    intent_id: intentId,
    outcome,
    provider_reference: options.reference ?? "",
    provider_code: options["provider-code"] ?? "",
    client_idempotency_key: key,
  });
  if (!result.ok) throw sentenceOf(result.failure);
  if (options.json === true) return printJson({ ...result.value, client_idempotency_key: key });
  const { report: recorded, assignment } = result.value;
  print(`Intent ${intentId} is ${assignment.status}: ${recorded.outcome}, under the key ${key}.`);
}

function outcomeOf(word: string): OutcomeWord {
  const found = OUTCOMES.find((outcome) => outcome === word);
  if (found === undefined) throw new UsageError(`--outcome is one of ${OUTCOMES.join(", ")}, and not "${word}".`);
  return found;
}

async function watch(options: Options): Promise<void> {
  const storage = fileStorage(required(options.file, "--file"));
  await untilEnded((onState) =>
    display({
      baseUrl: serviceOf(options),
      platform,
      storage,
      code: options.code,
      onState,
      render(shown, { isStale, blockedReason }) {
        if (options.json === true)
          return printJson({ display: shown, is_stale: isStale, blocked_reason: blockedReason });
        const reason = blockedReason === "" ? "" : ` (${blockedReason})`;
        const what = shown === null ? "nothing" : `${shown.state}: ${shown.currency} ${shown.amount}`;
        print(`${what}${isStale ? " (stale)" : ""}${reason}`);
      },
    }),
  );
}

async function simulate(options: Options): Promise<void> {
  const storage = fileStorage(required(options.file, "--file"));
  const outcome = outcomeOf(options.outcome ?? "reported_success");
  const seconds = options.seconds === undefined ? 1 : idOf(options.seconds, "--seconds");
  await untilEnded((onState) =>
    companion({
      baseUrl: serviceOf(options),
      platform,
      storage,
      code: options.code,
      onState,
      async launch({ intent_id: intentId, amount, currency }) {
        if (options.json === true) printJson({ launched: intentId, amount, currency });
        else print(`collecting ${currency} ${amount} for intent ${intentId}`);
        await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
        return { outcome, provider_reference: `SIM-${intentId}`, provider_code: "" };
      },
      onReported(reported, failure) {
        if (options.json === true) return printJson({ reported, failure });
        const end = failure === null ? "is recorded" : `was refused: ${failure.detail} (${failure.code})`;
        print(`the report ${reported.outcome} of intent ${reported.intent_id} ${end}`);
      },
    }),
  );
}

/** Runs a device until a signal comes. Throws `CommandError` when it needs a code that it does not have. */
async function untilEnded(
  start: (onState: (state: Pick<DeviceState, "phase" | "problem">) => void) => Device<unknown>,
): Promise<void> {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  let shown = "";
  const device = start(({ phase, problem }) => {
    const line = problem === null ? "" : `${problem.where}: ${problem.detail}\n`;
    if (line !== shown) process.stderr.write(line);
    shown = line;
    if (phase === "needs_code")
      reject(new CommandError("The device has no valid credential: issue an enrollment code and give it as --code."));
  });
  for (const name of ["SIGTERM", "SIGINT"] as const) process.once(name, () => resolve());
  try {
    await ended;
  } finally {
    device.stop();
  }
}
