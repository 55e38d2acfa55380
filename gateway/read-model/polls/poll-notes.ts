/**
 * Notes for all gateways that a companion asks for its assignment, at most one in ten seconds. A note is published and not
 * waited for: one that is lost is made good by the next, and a poll must not wait for the bus.
 */
import type { NatsConnection } from "nats";
import { pollSubject } from "../../../services/bus/subjects.ts";
import { turnPublisher } from "../../../services/bus/turn-publisher.ts";
import { LIMITS } from "../../limits.ts";
import type { CredentialTable } from "../replica/credential-table.ts";
import type { PollReplica } from "../replica/poll-replica.ts";

export class PollNotes {
  readonly #nc: NatsConnection;
  readonly #noted: Pick<PollReplica, "polledAtMs">;

  constructor(nc: NatsConnection, noted: Pick<PollReplica, "polledAtMs">) {
    this.#nc = nc;
    this.#noted = noted;
  }

  /** Nearly always returns after one look at the credential's own slot, which is in the processor's cache by then. */
  note(table: CredentialTable, slot: number, nowMs: number): void {
    const sinceMs = nowMs - table.polledAtSeconds(slot) * 1_000;
    // A clock that was set back must not keep notes away until it has caught up.
    if (sinceMs >= 0 && sinceMs < LIMITS.pollNoteMs) return;
    table.setPolledAtSeconds(slot, Math.floor(nowMs / 1_000));
    const deviceId = table.deviceId(slot);
    // Another gateway may have noted it already.
    const notedForMs = nowMs - (this.#noted.polledAtMs(deviceId) ?? 0);
    if (notedForMs >= 0 && notedForMs < LIMITS.pollNoteMs) return;
    turnPublisher(this.#nc).publish(pollSubject(table.stationId(slot), deviceId), "");
  }
}
