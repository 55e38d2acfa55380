/**
 * Which callbacks may wait for the providers service. The gateway has no secrets and cannot check a signature, so it decides
 * by what it knows about a sender:
 *
 *   no usable signature header ─────────────► a few slots; without a free one an error, without the service
 *   of an address whose callback for this ──► slots for verified senders, by config
 *   config was verified not long ago            │ none free
 *   every other ────────────────────────────►───┴► slots for new senders, in turn by address, then by config
 *
 * So a flood takes no slot of a provider's addresses. A flood from a few addresses delays a new sender by one turn of each.
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

  /** How many callbacks got no slot, by whether their signature could be valid. */
  readonly refused = { signed: 0, unsigned: 0 };

  /** A slot for a callback whose signature cannot be valid. Undefined when none is free. */
  enterUnsigned(address: string): ReleaseSlot | undefined {
    const release = this.#unsigned.tryAcquire(addressBlock(address));
    if (release === undefined) this.refused.unsigned += 1;
    return release;
  }

  /** A slot for a callback whose signature may be valid. Undefined when none became free in time. */
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

/** A bounded number of configs, and of address blocks per config. It forgets the one verified longest ago first. */
class VerifiedSenders {
  /** The config verified longest ago is first, because a Map keeps the order of insertion. */
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
