/**
 * The station lease: the cashier who holds it drives the station's collections (design §4, "one station").
 *
 *            ACQUIRE                        RENEW, ACQUIRE by the holder
 *   ┌──────┐ ───────► ┌──────┐ ──┐          TAKE_OVER by another cashier, from the holder
 *   │ free │          │ held │ ◄─┘
 *   └──────┘ ◄─────── └──────┘
 *        RELEASE by the holder, END with its session, BREAK by the owner, LAPSE
 *
 * The lease belongs to the person: every session of the holder may drive the station. The lease is bound to the session that
 * acquired or renewed it last, and ends with that session. The deadline is data in the lease, and LAPSE is an ordinary event.
 */
import { assign, setup } from "xstate";

export interface LeaseHolder {
  readonly cashierId: number;
  readonly cashierName: string;
  /** The session that acquired or renewed the lease last; null when the lease is not bound to a session. */
  readonly sessionId: number | null;
  readonly acquiredAtMs: number;
  readonly expiresAtMs: number;
}

export const LEASE_LOSSES = ["taken_over", "broken"] as const;
export type LeaseLoss = (typeof LEASE_LOSSES)[number];

/** The last lease that another person ended, for the screen of its former holder. */
export interface LostLease {
  readonly cashierId: number;
  readonly cashierName: string;
  readonly reason: LeaseLoss;
  readonly byName: string;
  readonly atMs: number;
}

/** A free lease has no holder. */
interface LeaseRecord {
  readonly holder: LeaseHolder | null;
  /** Kept until a cashier acquires the free station again. */
  readonly lost: LostLease | null;
}

export type LeaseEvent =
  | { readonly type: "ACQUIRE"; readonly holder: LeaseHolder }
  | { readonly type: "TAKE_OVER"; readonly holder: LeaseHolder; readonly fromCashierId: number }
  | {
      readonly type: "RENEW";
      readonly cashierId: number;
      readonly sessionId: number | null;
      readonly expiresAtMs: number;
    }
  | { readonly type: "RELEASE"; readonly cashierId: number }
  | { readonly type: "END"; readonly sessionIds: readonly number[] }
  | { readonly type: "BREAK"; readonly byName: string; readonly atMs: number }
  | { readonly type: "LAPSE" };

export const leaseMachine = setup({
  types: { context: {} as LeaseRecord, events: {} as LeaseEvent },
  guards: {
    isByHolder: ({ context: { holder }, event }) => {
      switch (event.type) {
        case "ACQUIRE":
          return event.holder.cashierId === holder?.cashierId;
        case "RENEW":
        case "RELEASE":
          return event.cashierId === holder?.cashierId;
        case "TAKE_OVER":
        case "END":
        case "BREAK":
        case "LAPSE":
          return false;
      }
    },
    isFromHolder: ({ context: { holder }, event }) =>
      event.type === "TAKE_OVER" &&
      event.fromCashierId === holder?.cashierId &&
      event.holder.cashierId !== holder.cashierId,
    isOfSession: ({ context: { holder }, event }) =>
      event.type === "END" && typeof holder?.sessionId === "number" && event.sessionIds.includes(holder.sessionId),
  },
  actions: {
    hold: assign(({ context, event }) => (event.type === "ACQUIRE" ? { holder: event.holder, lost: null } : context)),
    extend: assign(({ context, event }) => {
      if (context.holder === null) return context;
      const renewed = event.type === "ACQUIRE" ? event.holder : event;
      if (!("sessionId" in renewed)) return context;
      const { sessionId, expiresAtMs } = renewed;
      return { ...context, holder: { ...context.holder, sessionId, expiresAtMs } };
    }),
    pass: assign(({ context, event }) => {
      if (event.type !== "TAKE_OVER" || context.holder === null) return context;
      const { cashierName: byName, acquiredAtMs: atMs } = event.holder;
      return { holder: event.holder, lost: loss(context.holder, { reason: "taken_over", byName, atMs }) };
    }),
    free: assign(({ context }) => ({ ...context, holder: null })),
    break: assign(({ context, event }) => {
      if (event.type !== "BREAK" || context.holder === null) return context;
      const { byName, atMs } = event;
      return { holder: null, lost: loss(context.holder, { reason: "broken", byName, atMs }) };
    }),
  },
}).createMachine({
  id: "lease",
  initial: "free",
  context: { holder: null, lost: null },
  states: {
    free: { on: { ACQUIRE: { target: "held", actions: "hold" } } },
    held: {
      on: {
        ACQUIRE: { guard: "isByHolder", target: "held", actions: "extend" },
        TAKE_OVER: { guard: "isFromHolder", target: "held", actions: "pass" },
        RENEW: { guard: "isByHolder", target: "held", actions: "extend" },
        RELEASE: { guard: "isByHolder", target: "free", actions: "free" },
        END: { guard: "isOfSession", target: "free", actions: "free" },
        BREAK: { target: "free", actions: "break" },
        LAPSE: { target: "free", actions: "free" },
      },
    },
  },
});

function loss({ cashierId, cashierName }: LeaseHolder, by: Pick<LostLease, "reason" | "byName" | "atMs">): LostLease {
  return { cashierId, cashierName, ...by };
}

export type LeaseState = "free" | "held";
export const LEASE_STATES = ["free", "held"] as const satisfies readonly LeaseState[];
