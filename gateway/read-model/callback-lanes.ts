/**
 * Which callbacks may wait for the providers service. The gateway has no secrets and cannot check a signature, so it goes by
 * what a sender has shown:
 *
 *   no signature header, or one of no use ──► a few at once; beyond it refused without the service
 *   of an address whose callback for this ──► slots for verified senders, by config
 *   config was verified not long ago            │ none free
 *   every other ────────────────────────────►───┴► slots for new senders, in turn by address, then by config
 *
 * So a flood takes no slot of a provider's addresses, and one from a few addresses delays a new sender by one turn of each.
 */
import { addressBlock } from "../../services/bus/address-block.ts";
import { FairSlots, type ReleaseSlot } from "../../services/runtime/fair-slots.ts";
import { LIMITS } from "../limits.ts";

interface Sender {
  readonly configId: number;
  readonly address: string;
}

export class CallbackLanes {
  readonly #unsigned = new FairSlots<string>({
    total: LIMITS.unsignedCallbacksInFlight,
    perKey: LIMITS.unsignedCallbacksInFlightPerAddress,
    waiting: 0,
    waitingPerKey: 0,
  });
  readonly #verified = new FairSlots<number>({
    total: LIMITS.verifiedCallbacksInFlight,
    perKey: LIMITS.verifiedCallbacksInFlightPerConfig,
    waiting: 0,
    waitingPerKey: 0,
  });
  readonly #fresh = new FairSlots<number, string>({
    total: LIMITS.newCallbacksInFlight,
    perKey: LIMITS.newCallbacksInFlightPerConfig,
    keptForNewKeys: LIMITS.newCallbacksKeptForConfigs,
    waiting: LIMITS.newCallbacksWaiting,
    waitingPerKey: LIMITS.newCallbacksWaiting,
  });
  readonly #senders = new VerifiedSenders();

  /** Callbacks that got no slot so far, by whether their signature could be right. */
  readonly refused = { signed: 0, unsigned: 0 };

  /** A slot for a callback that cannot be right; undefined when there is none. */
  enterUnsigned(address: string): ReleaseSlot | undefined {
    const release = this.#unsigned.tryAcquire(addressBlock(address));
    if (release === undefined) this.refused.unsigned += 1;
    return release;
  }

  /** A slot for a callback that may be right; undefined when there was none in time. */
  async enter({ configId, address }: Sender, nowMs: number): Promise<ReleaseSlot | undefined> {
    const block = addressBlock(address);
    const release = this.#senders.has(configId, block, nowMs) ? this.#verified.tryAcquire(configId) : undefined;
    if (release !== undefined) return release;
    const turn = await this.#fresh.acquire(configId, LIMITS.newCallbackWaitMs, block);
    if (turn === undefined) this.refused.signed += 1;
    return turn;
  }

  /** The providers service has verified a callback of this sender. */
  verified({ configId, address }: Sender, nowMs: number): void {
    this.#senders.add(configId, addressBlock(address), nowMs);
  }
}

/** Address blocks by config, bounded in both: the one that was verified longest ago is forgotten first. */
class VerifiedSenders {
  /** By age of the last verified callback, because a Map keeps its order of insertion. */
  readonly #ofConfigs = new Map<number, Map<string, number>>();

  has(configId: number, block: string, nowMs: number): boolean {
    const atMs = this.#ofConfigs.get(configId)?.get(block);
    return atMs !== undefined && nowMs - atMs <= LIMITS.verifiedSenderMs;
  }

  add(configId: number, block: string, nowMs: number): void {
    const blocks = this.#ofConfigs.get(configId) ?? new Map<string, number>();
    putLast(this.#ofConfigs, { key: configId, value: blocks, most: LIMITS.verifiedConfigs });
    putLast(blocks, { key: block, value: nowMs, most: LIMITS.verifiedSendersPerConfig });
  }
}

function putLast<TKey, TValue>(
  map: Map<TKey, TValue>,
  { key, value, most }: { readonly key: TKey; readonly value: TValue; readonly most: number },
): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > most && oldest !== undefined) map.delete(oldest);
}
