/**
 * A device of the kit that follows the conformance suite's instructions: start from it to write the program of your device. It
 * reads one instruction per line, and writes a line when it has followed it (docs/conformance.md, "A device under test").
 * Replace the simulated payment application by yours, and `shown` by what your screen shows.
 *
 *   npm run cli -- certify --sandbox 1 --device companion --provider Acme --software 1.0.0 \
 *       --program "node clients/device-kit/samples/under-test.ts companion"
 */
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type CompanionOptions, companion } from "../companion.ts";
import { display } from "../display.ts";
import { fileStorage } from "../storage/file.ts";

type Outcome = Awaited<ReturnType<CompanionOptions["launch"]>>;
interface Instruction {
  readonly id: number;
  readonly instruction: "enroll" | "payments" | "finish" | "shown";
  readonly base_url: string;
  readonly code: string;
  readonly act: string;
}

const [kind = "companion"] = process.argv.slice(2);
const { FILE = `under-test-${kind}.json` } = process.env;
/** The file with the service's address, with which the device continues after a power cut. */
const PLACE = `${FILE}.place`;

let device: { stop(): void } | undefined;
let shown = { state: "nothing", amount: "", qr_payload: "" };
let act = "approve";
let held = Promise.withResolvers<void>();

/** The payment application; it answers as the suite instructs. */
async function pay(): Promise<Outcome> {
  if (act === "decline") return { outcome: "reported_declined", provider_code: "05" };
  if (act === "cancel") return { outcome: "reported_cancelled", provider_code: "17" };
  if (act === "hold") await held.promise;
  return { outcome: "reported_success", provider_reference: `RRN-${Date.now()}`, provider_code: "00" };
}

function start(baseUrl: string, code?: string): void {
  device?.stop();
  const options = { baseUrl, storage: fileStorage(FILE), code };
  device =
    kind === "companion"
      ? companion({ ...options, launch: pay })
      : display({
          ...options,
          render: (now) => {
            shown =
              now === null
                ? { state: "nothing", amount: "", qr_payload: "" }
                : { state: now.state, amount: now.amount, qr_payload: now.qr_payload };
          },
        });
}

function storedPlace(): string | undefined {
  try {
    return readFileSync(PLACE, "utf8");
  } catch {
    return undefined;
  }
}

function follow({ id, instruction, base_url: baseUrl, code, act: wanted }: Instruction): object {
  switch (instruction) {
    case "enroll":
      // Another run of the suite: the record from the earlier run is no longer valid.
      if (storedPlace() !== baseUrl) rmSync(FILE, { force: true });
      writeFileSync(PLACE, baseUrl);
      start(baseUrl, code);
      return { id };
    case "payments":
      act = wanted;
      held = Promise.withResolvers();
      return { id };
    case "finish":
      held.resolve();
      return { id };
    case "shown":
      return { id, shown };
    default:
      return { id };
  }
}

// A line that is no answer is part of the program's log.
process.stdout.write(`The ${kind} is ready.\n`);
const place = storedPlace();
if (place !== undefined) start(place);
for await (const line of createInterface(process.stdin))
  process.stdout.write(`${JSON.stringify(follow(JSON.parse(line) as Instruction))}\n`);
device?.stop();
