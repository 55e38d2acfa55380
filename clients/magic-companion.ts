/**
 * A companion of the device kit with a simulated payment application. Its name or the amount chooses its behaviour. The kit keeps
 * the rules of the device guide; code between the kit and the network breaks them on purpose.
 */
import { once } from "node:events";
import type { Logger } from "pino";
import type { Report } from "./device-kit/client.ts";
import { type Companion, companion, type Launch } from "./device-kit/companion.ts";
import type { CompanionState, Outcome } from "./device-kit/companion-machine.ts";
import type { DeviceState } from "./device-kit/device-machine.ts";
import { KIT_LIMITS } from "./device-kit/limits.ts";
import { hostPlatform } from "./device-kit/platform.ts";
import type { DeviceOptions } from "./device-kit/run-device.ts";
import type { Failure } from "./device-kit/transport.ts";
import { pause } from "./http/pace.ts";
import { clientLimits } from "./limits.ts";
import { type Behaviour, behaviourOf, namedBehaviour, reportOf } from "./magic-behaviours.ts";

export interface MagicDeps {
  readonly log: Pick<Logger, "info" | "warn">;
  /** Ends the companion's waits. */
  readonly signal: AbortSignal;
}

/**
 * Whether the companion makes a collection that is created from now on. The kit does not launch a collection that exists at its
 * first poll. A companion whose name forbids polls is ready without a poll.
 */
export function isReady({ isReady: isLive, record }: DeviceState): boolean {
  return isLive && record?.first_poll_pending === false;
}

/** Starts the companion. It runs until it is stopped; abort the signal then. */
export function magicCompanion(options: DeviceOptions<CompanionState>, { log, signal: stopped }: MagicDeps): Companion {
  const host = options.platform ?? hostPlatform();
  /** The behaviour for the newest collection. Its report is answered before the next collection is launched. */
  let newest: { readonly intentId: number; readonly behaviour: Behaviour } | undefined;
  let isOffline = false;
  const behaviourFor = (intentId: number): Behaviour | undefined =>
    newest?.intentId === intentId ? newest.behaviour : undefined;
  const isUnreported = (intentId: number): boolean => {
    const behaviour = behaviourFor(intentId);
    return behaviour !== undefined && reportOf(behaviour) === null;
  };

  /** Sends a request of the kit, unless the name or the newest collection forbids it. */
  async function send(url: string, init: RequestInit): Promise<Response> {
    if (isOffline) throw new Error("The companion plays offline.");
    const operation = url.slice(url.lastIndexOf("/devices/") + "/devices/".length);
    // After a start with a stored credential, the first heartbeat returns the name.
    const named = namedBehaviour(device.state().snapshot?.name ?? "");
    if (operation === "assignment/" && (named === "never_poll" || named === "stay_offline"))
      return Response.json({ assignment: null, server_time: "" });
    // `me/` has the same answer as a heartbeat, but does not make the device live.
    if (operation === "heartbeat/" && named === "stay_offline")
      return await host.fetch(url.replace(/heartbeat\/$/, "me/"), { ...init, method: "GET", body: null });
    // The kit reports a missing outcome as unknown. This companion must report nothing, so a final error ends the report here.
    if (operation === "assignment/report/" && isUnreported(intentIdOf(init.body)))
      return Response.json({ code: "handoff_not_assigned", detail: "The companion reports nothing." }, { status: 404 });
    return await host.fetch(url, init);
  }

  async function launch(
    { intent_id: intentId, amount, currency }: Launch,
    signal: AbortSignal,
  ): Promise<Outcome | null> {
    log.info({ intentId, amount, currency }, `collecting ${currency} ${amount}`);
    await pause(clientLimits.collectMs, stopped);
    stopped.throwIfAborted();
    // The newest name decides: the owner may have renamed the device since its last heartbeat.
    const me = await device.client.me();
    const name = me.ok ? me.value.name : device.state().snapshot?.name;
    const behaviour = behaviourOf(name ?? "", amount);
    newest = { intentId, behaviour };
    if (behaviour === "go_offline") await goOffline(intentId, signal);
    if (behaviour === "late_success" || behaviour === "late_decline") await untilOver(intentId, signal);
    stopped.throwIfAborted();
    const report = reportOf(behaviour);
    if (report === null) return null;
    const { outcome, providerCode } = report;
    // A companion that does not know the outcome does not know the reference either.
    const reference = outcome === "reported_unknown" ? "" : virtualReference(intentId);
    return { outcome, provider_reference: reference, provider_code: providerCode };
  }

  /** The signal is aborted at the collection's deadline. */
  async function goOffline(intentId: number, signal: AbortSignal): Promise<void> {
    log.info({ intentId }, "going offline until the collection has ended");
    isOffline = true;
    await aborted(AbortSignal.any([signal, stopped]));
    await pause(clientLimits.endedAfterMs, stopped);
    isOffline = false;
  }

  /** Polls until the service no longer assigns the collection, or its deadline has surely passed. */
  async function untilOver(intentId: number, signal: AbortSignal): Promise<void> {
    const until = AbortSignal.any([signal, stopped]);
    for (let isOver = false; !isOver && !until.aborted; ) {
      await pause(KIT_LIMITS.pollEveryMs, until);
      const polled = await device.client.assignment();
      isOver = polled.ok && polled.value !== undefined && polled.value.assignment?.intent_id !== intentId;
    }
    if (until.aborted) await pause(clientLimits.endedAfterMs, stopped);
    // The kit has not received these answers, so its next poll must not send their ETag.
    device.client.forgetEtags();
  }

  function onReported(report: Report, failure: Failure | null): void {
    logEnd(report, failure);
    if (failure === null && behaviourFor(report.intent_id) === "report_twice") void reportAgain(report);
  }

  async function reportAgain(report: Report): Promise<void> {
    const answer = await device.client.report(report);
    logEnd(report, answer.ok ? null : answer.failure);
  }

  function logEnd(report: Report, failure: Failure | null): void {
    const { intent_id: intentId, outcome, provider_reference: providerReference } = report;
    const behaviour = behaviourFor(intentId);
    if (isUnreported(intentId)) return log.info({ intentId, behaviour }, "reporting nothing");
    if (failure === null)
      return log.info({ intentId, behaviour, outcome, providerReference }, sentence(outcome, providerReference));
    const { status, code: reason, intent_status: intentStatus, detail } = failure;
    const hasEnded = status === 404 || status === 409;
    const message = hasEnded ? "the collection ended before it was reported" : detail;
    log.warn({ intentId, behaviour, reason, intentStatus }, message);
  }

  // There is no `status`: the simulated payment application stores nothing, so after a restart the outcome is unknown.
  const device = companion({ ...options, platform: { ...host, fetch: send }, launch, onReported });
  return device;
}

/** The reference that the simulated payment application gives an attempt, for example `VIRT-000123`. */
function virtualReference(intentId: number): string {
  return `VIRT-${String(intentId).padStart(6, "0")}`;
}

function intentIdOf(body: RequestInit["body"]): number {
  // The kit sends text.
  return (JSON.parse(body as string) as Pick<Report, "intent_id">).intent_id;
}

function sentence(outcome: string, providerReference: string): string {
  const what = outcome.replace("_", " ");
  return providerReference === "" ? what : `${what} with reference ${providerReference}`;
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
