/** A providers service for tests: it serves the real operations of the bus with answers from a script. */
import {
  createProviderPayment,
  findRecordedConfirmation,
  withdrawProviderPayment,
} from "../../services/bus/messages/provider-payments.ts";
import { type ReplyOf, type RequestOf, serve } from "../../services/bus/operation.ts";
import { STATION_LIMITS } from "../../services/stations/limits.ts";
import type { StationWorld } from "./station-world.ts";

export type Question = RequestOf<typeof createProviderPayment>;
export type Answer = ReplyOf<typeof createProviderPayment>;

export interface ScriptedProviders {
  /** Every request for a payment, in the order of arrival. */
  readonly questions: readonly Question[];
  /**
   * The confirmation that was recorded in time, by intent. `unanswered` means that the service is stopped, `hangs` that it is
   * stalled, and `before the deadline` that the database's clock has not reached the deadline.
   */
  readonly recorded: Map<number, string>;
  /** Intents that a host has checked for a recorded confirmation, in order. */
  readonly checked: readonly number[];
  /** Intents whose end a host has reported, in order. */
  readonly withdrawn: readonly number[];
  stop(): Promise<void>;
}

/** Far longer than a host waits. It has an end, because open requests would fill the service, which then answers `busy`. */
const HANGS_MS = 10 * STATION_LIMITS.confirmationCheckMs;

/** The answer with the QR of an intent, unless the script gives another one. */
export const qrOf = (intentId: number): Answer => ({
  created: true,
  qrPayload: `000201-QR-${intentId}`,
  providerReference: `PAY-${intentId}`,
});

/** Serves the three operations on a separate connection until it is stopped. */
export async function startScriptedProviders(
  world: StationWorld,
  script: (question: Question) => Answer | Promise<Answer> = ({ intentId }) => qrOf(intentId),
): Promise<ScriptedProviders> {
  const bus = await world.connect("providers");
  const questions: Question[] = [];
  const withdrawn: number[] = [];
  const checked: number[] = [];
  const recorded = new Map<number, string>();
  // When a script throws, the answer is "unavailable".
  const deps = { nc: bus.nc, log: { warn: () => undefined, error: () => undefined }, queue: "providers" };
  serve(deps, createProviderPayment, async (question) => {
    questions.push(question);
    return await script(question);
  });
  serve(deps, findRecordedConfirmation, async ({ intentId }) => {
    checked.push(intentId);
    const found = recorded.get(intentId);
    if (found === "hangs") await new Promise((resolve) => setTimeout(resolve, HANGS_MS));
    if (found === "unanswered" || found === "hangs") throw new Error("The test gives no answer.");
    if (found === "before the deadline") return { isOver: false, providerReference: null };
    return { isOver: true, providerReference: found ?? null };
  });
  serve(deps, withdrawProviderPayment, async ({ intentId }) => {
    withdrawn.push(intentId);
    return {};
  });
  await bus.nc.flush();
  return { questions, recorded, checked, withdrawn, stop: () => bus.close() };
}
