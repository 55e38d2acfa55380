/**
 * Notices that a host sends a commit to a log, so that the copier of an idle log need not poll often:
 *
 *   arm ── subscribe, for one message ──► a host sends a commit ──► woken; the server has ended the subscription
 *
 * The message is only a hint. It arrives before the server has stored the commit, the server may refuse the commit, and in a
 * cluster the message may be lost. So the copier reads the log after a hint, and at longer intervals without one. The copier
 * of a busy log does not arm the notice.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { NatsConnection, Subscription } from "nats";

export class CommitNotice {
  readonly #nc: NatsConnection;
  readonly #subjects: string;
  #armed: { readonly subscription: Subscription; readonly woken: AbortController } | undefined;

  constructor(nc: NatsConnection, subjects: string) {
    this.#nc = nc;
    this.#subjects = subjects;
  }

  get isArmed(): boolean {
    return this.#armed !== undefined;
  }

  /** The notice misses commits from before this call, so the caller reads the log again after it. */
  arm(): void {
    const woken = new AbortController();
    const subscription = this.#nc.subscribe(this.#subjects, { max: 1, callback: () => woken.abort() });
    this.#armed = { subscription, woken };
  }

  /** Waits up to `timeoutMs` for a commit that was sent since `arm`. When there is one, the notice is no longer armed. */
  async within(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const woken = this.#armed?.woken.signal ?? signal;
    await pause(timeoutMs, undefined, { signal: AbortSignal.any([signal, woken]) }).catch(() => undefined);
    if (!woken.aborted) return false;
    this.#armed = undefined;
    return true;
  }

  disarm(): void {
    this.#armed?.subscription.unsubscribe();
    this.#armed = undefined;
  }
}
