/** Reading and appending commits. One append per station is under way at a time; the log decides which was first (I5). */
import { type ApiError, JetStreamApiError } from "@nats-io/jetstream";
import { createInbox, headers, type Msg, type MsgHdrs, type Subscription } from "nats";
import { type Commit, decodeCommit, encodeCommit } from "../../machines/station/commit.ts";
import { nextDeadlineMs } from "../../machines/station/deadlines.ts";
import type { StationState } from "../../machines/station/state.ts";
import { type Bus, BusDownError } from "../bus/connection.ts";
import { NO_MESSAGE, WRONG_LAST_SEQUENCE } from "../bus/jetstream-codes.ts";
import type { StationLogs } from "../bus/streams.ts";
import { turnPublisher } from "../bus/turn-publisher.ts";
import { STATION_LIMITS } from "./limits.ts";

export interface StoredCommit {
  readonly commit: Commit;
  readonly sequence: number;
}

/** `unknown`: the append may or may not have taken effect; it has to be read back. */
type AppendOutcome =
  | { readonly kind: "stored"; readonly sequence: number }
  | { readonly kind: "conflict" }
  /** `isInFlight`: certainly not stored, because another append on the subject was under way. */
  | { readonly kind: "unknown"; readonly cause: unknown; readonly isInFlight?: boolean };

/** `outdated`: there is a newer commit, or one is being appended. */
type Confirmation = "newest" | "outdated" | "unknown";

const EXPECTED_SEQUENCE = "Nats-Expected-Last-Subject-Sequence";
/** The subject whose newest sequence is expected, when it is another than the message's own. */
const EXPECTED_SEQUENCE_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject";

/** JetStream's errors while another append under a condition on the same subject is under way; only a cluster has them. */
const IN_FLIGHT: readonly (number | undefined)[] = [10163, 10164];

/** On which a server that has become the leader of a stream reports it; the last token is the stream. */
const LEADER_ELECTED = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED";

interface Pending {
  readonly stream: string;
  readonly settle: (outcome: AppendOutcome) => void;
  readonly deadline: number;
}

export class StationLog {
  readonly #bus: Bus;
  readonly #logs: StationLogs;
  readonly #inbox = createInbox();
  readonly #acks: Subscription;
  readonly #elections: Subscription;
  /** Undefined while no append waits. */
  #sweep: NodeJS.Timeout | undefined;
  readonly #stopListening: () => void;
  /** By the token of their inbox. */
  readonly #pending = new Map<string, Pending>();
  #count = 0;

  constructor(bus: Bus, logs: StationLogs) {
    this.#bus = bus;
    this.#logs = logs;
    // One inbox and one sweep for all appends: the client's own request costs a timer and several promises each.
    this.#acks = bus.nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (error === null) this.#acknowledge(message);
      },
    });
    // A leader that steps down loses the appends that it has not yet passed on, and answers nothing: read them back at once.
    this.#elections = bus.nc.subscribe(`${LEADER_ELECTED}.*`, {
      callback: (error, message) => {
        if (error !== null) return;
        const elected = message.subject.slice(LEADER_ELECTED.length + 1);
        this.#abandon(new Error("The log has a new leader."), ({ stream }) => stream === elected);
      },
    });
    this.#stopListening = bus.onChange((isUp) => {
      if (!isUp) this.#abandon(new BusDownError());
    });
  }

  /**
   * The newest commit of a station, or null, from the stream's leader: any other replica may lag. Rejects when the server does
   * not answer.
   */
  async load(stationId: number): Promise<StoredCommit | null> {
    const subject = this.#logs.subject(stationId);
    const answer = await this.#bus.nc.request(
      `$JS.API.STREAM.MSG.GET.${this.#logs.of(stationId).name}`,
      JSON.stringify({ last_by_subj: subject }),
      { timeout: STATION_LIMITS.loadMs },
    );
    const { message, error } = answer.json<StoredMessageAnswer>();
    if (error?.err_code === NO_MESSAGE) return null;
    if (error !== undefined) throw new JetStreamApiError(error);
    if (message === undefined) throw new Error(`JetStream has no answer about ${subject}.`);
    return { commit: decodeCommit(Buffer.from(message.data, "base64").toString()), sequence: message.seq };
  }

  /** Appends a commit if the station's newest one still has `expectedSequence` (0: none). Never rejects. */
  async append(stationId: number, expectedSequence: number, commit: Commit): Promise<AppendOutcome> {
    const conditions = headers();
    conditions.set(EXPECTED_SEQUENCE, String(expectedSequence));
    conditions.set(WAKE_HEADER, encodeWake(wakeOf(commit.state)));
    const stream = this.#logs.of(stationId).name;
    return await this.#publish(stream, this.#logs.subject(stationId), encodeCommit(commit), {
      conditions,
      timeoutMs: STATION_LIMITS.appendMs,
    });
  }

  /**
   * Whether the station's newest commit still has this sequence (0: none). Only a majority of the stream's servers can store
   * the message that asks, so no server that is cut off or lags behind can answer. Never rejects.
   */
  async confirm(stationId: number, sequence: number): Promise<Confirmation> {
    const conditions = headers();
    conditions.set(EXPECTED_SEQUENCE, String(sequence));
    conditions.set(EXPECTED_SEQUENCE_SUBJECT, this.#logs.subject(stationId));
    const { name, confirmSubject } = this.#logs.of(stationId);
    const options = { conditions, timeoutMs: STATION_LIMITS.confirmMs };
    const outcome = await this.#publish(name, confirmSubject, "", options);
    if (outcome.kind === "stored") return "newest";
    if (outcome.kind === "conflict") return "outdated";
    return outcome.isInFlight === true ? "outdated" : "unknown";
  }

  close(): void {
    clearTimeout(this.#sweep);
    this.#stopListening();
    this.#acks.unsubscribe();
    this.#elections.unsubscribe();
    this.#abandon(new BusDownError());
  }

  #publish(
    stream: string,
    subject: string,
    body: string,
    { conditions, timeoutMs }: { readonly conditions: MsgHdrs; readonly timeoutMs: number },
  ): Promise<AppendOutcome> {
    return new Promise((settle) => {
      if (!this.#bus.isUp()) return settle({ kind: "unknown", cause: new BusDownError() });
      this.#count += 1;
      const token = String(this.#count);
      const options = { reply: `${this.#inbox}.${token}`, headers: conditions };
      turnPublisher(this.#bus.nc).publish(subject, body, options, (cause) => {
        this.#pending.delete(token);
        settle({ kind: "unknown", cause });
      });
      this.#pending.set(token, { stream, settle, deadline: performance.now() + timeoutMs });
      this.#sweepLater();
    });
  }

  #acknowledge(message: Msg): void {
    const token = message.subject.slice(this.#inbox.length + 1);
    const pending = this.#pending.get(token);
    if (pending === undefined) return;
    this.#pending.delete(token);
    pending.settle(readAcknowledgement(message));
  }

  #sweepLater(): void {
    this.#sweep ??= setTimeout(() => {
      this.#sweep = undefined;
      this.#expire();
      if (this.#pending.size > 0) this.#sweepLater();
    }, STATION_LIMITS.appendSweepMs);
  }

  #expire(): void {
    const now = performance.now();
    for (const [token, pending] of this.#pending) {
      if (pending.deadline > now) continue;
      this.#pending.delete(token);
      pending.settle({ kind: "unknown", cause: new Error("The log did not acknowledge in time.") });
    }
  }

  /** Reports the outcome of these appends as unknown. */
  #abandon(cause: Error, isMeant: (pending: Pending) => boolean = () => true): void {
    for (const [token, pending] of this.#pending) {
      if (!isMeant(pending)) continue;
      this.#pending.delete(token);
      pending.settle({ kind: "unknown", cause });
    }
  }
}

interface JetStreamFault {
  readonly err_code?: number;
  readonly description?: string;
}

interface StoredMessageAnswer {
  readonly message?: { readonly seq: number; readonly data: string };
  readonly error?: ApiError;
}

interface Acknowledgement {
  readonly seq?: number;
  readonly error?: JetStreamFault;
}

function readAcknowledgement(message: Msg): AppendOutcome {
  if (message.headers?.code === 503) return { kind: "unknown", cause: new Error("JetStream does not answer.") };
  try {
    const { seq, error } = message.json<Acknowledgement>();
    if (error?.err_code === WRONG_LAST_SEQUENCE) return { kind: "conflict" };
    if (error === undefined && seq !== undefined) return { kind: "stored", sequence: seq };
    const cause = new Error(error?.description ?? "JetStream's answer was not understood.");
    return { kind: "unknown", cause, isInFlight: IN_FLIGHT.includes(error?.err_code) };
  } catch (cause) {
    return { kind: "unknown", cause };
  }
}

/**
 * What a passive station still has to be woken for, as a header of its last commit. A host that takes over a partition reads
 * headers only: it gets every deadline, call under way and online device without decoding a state.
 */
export const WAKE_HEADER = "Station-Wake";

export interface Wake {
  /** When the state changes by itself, or null. */
  readonly dueMs: number | null;
  /**
   * Whether a call is under way whose answer is not committed: to the payment seam, to a provider for a QR, or to the
   * providers service about the end of one.
   */
  readonly isAsking: boolean;
  readonly onlineDevices: readonly number[];
}

function wakeOf(state: StationState): Wake {
  const onlineDevices: number[] = [];
  for (const device of state.devices) if (device.liveness.state === "online") onlineDevices.push(device.deviceId);
  return { dueMs: nextDeadlineMs(state), isAsking: isAsking(state), onlineDevices };
}

function isAsking({ intent, unreportedEnds }: StationState): boolean {
  if (unreportedEnds.length > 0) return true;
  return intent?.status === "settling" || (intent?.status === "created" && intent.route === "dynamic_qr");
}

/** `<due or 0> <1 when asking> <online devices, comma separated>` */
export function encodeWake(wake: Wake): string {
  return `${wake.dueMs ?? 0} ${wake.isAsking ? 1 : 0} ${wake.onlineDevices.join(",")}`;
}

/** Undefined for a commit without a readable header: the host reads its state instead. */
export function decodeWake(text: string | undefined): Wake | undefined {
  const match = /^(\d+) ([01])(?: ([\d,]*))?$/.exec(text ?? "");
  if (match === null) return undefined;
  const dueMs = Number(match[1]);
  const devices = match[3] ?? "";
  return {
    dueMs: dueMs === 0 ? null : dueMs,
    isAsking: match[2] === "1",
    onlineDevices: devices === "" ? [] : devices.split(",").map(Number),
  };
}
