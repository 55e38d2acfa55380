/**
 * A smart POS companion to start from. Replace `payWith` and `askFor` by calls to your payment application; the kit does
 * everything else: credential, heartbeats, polls, reports, and what has to happen after a power cut.
 *
 *   BASE_URL=http://127.0.0.1:8480 CODE=XXXXX-XXXXX FILE=companion.json node_modules/.bin/node clients/device-kit/samples/companion.ts
 *
 * With the package installed the imports are "device-kit/companion" and "device-kit/storage/file".
 */
import { type CompanionOptions, companion, type Launch } from "../companion.ts";
import type { CompanionState } from "../companion-machine.ts";
import { fileStorage } from "../storage/file.ts";

const { BASE_URL = "http://127.0.0.1:8480", CODE, FILE = "companion.json" } = process.env;
const show = (line: string): void => void process.stdout.write(`${line}\n`);
type Outcome = Awaited<ReturnType<CompanionOptions["launch"]>>;

/**
 * Launches the payment application, and returns what it returned. Give it `reference`: after a power cut `askFor` asks by it.
 * `amount` is a decimal text; never calculate with it as a floating point number.
 */
async function payWith({ amount, currency, reference, handoff_target }: Launch, signal: AbortSignal): Promise<Outcome> {
  show(`launching ${handoff_target || "the payment application"} for ${currency} ${amount} as ${reference}`);
  // The guest needs a second. At the deadline the signal is aborted: end the payment then, if your application can. Return
  // reported_cancelled only when your application has confirmed the end: otherwise the guest may still pay.
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  if (signal.aborted) return null;
  // Map your application's result to reported_success, reported_declined, reported_cancelled or reported_unknown.
  // Return null when the result is not known: it is reported as unknown. Never turn it into a success or a decline.
  return { outcome: "reported_success", provider_reference: `RRN-${reference}`, provider_code: "00" };
}

/** After a power cut: what became of the payment with this reference; null when the payment application does not know. */
async function askFor(reference: string): Promise<Outcome> {
  show(`asking the payment application for ${reference}`);
  return null;
}

function lineOf({ phase, blockedReason, problem, work, isReady }: CompanionState): string {
  if (phase === "needs_code") return "enter a new enrollment code";
  if (blockedReason !== "") return `blocked: ${blockedReason}`;
  if (problem !== null) return `${problem.detail} ${problem.request_id}`;
  if (!isReady) return "starting";
  return work === "launching" ? "collecting" : "ready";
}

let shown = "";
const till = companion({
  baseUrl: BASE_URL,
  storage: fileStorage(FILE),
  code: CODE,
  launch: payWith,
  // Omit it when your payment application cannot return the outcome of an earlier payment.
  status: askFor,
  // The service's operators see this.
  summary: () => ({ app_version: "1.0.0" }),
  // Show this to the person at the till.
  onState(state) {
    const line = lineOf(state);
    if (line !== shown) show(line);
    shown = line;
  },
  onReported(report, failure) {
    show(failure === null ? `reported ${report.outcome}` : `the collection had ended: ${failure.detail}`);
  },
});

for (const name of ["SIGINT", "SIGTERM"] as const)
  process.once(name, () => {
    till.stop();
  });
