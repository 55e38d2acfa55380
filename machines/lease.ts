/**
 * The station lease: the cashier who holds it drives the station's collections (design §4, "one station").
 *
 *            ACQUIRE                        RENEW, ACQUIRE by the holder
 *   ┌──────┐ ───────► ┌──────┐ ──┐
 *   │ free │          │ held │ ◄─┘
 *   └──────┘ ◄─────── └──────┘
 *        RELEASE by the holder, LAPSE
 *
 * The deadline is data in the lease; a lapsed lease is freed by an ordinary LAPSE event.
 */
import { assign, setup } from "xstate";

export interface LeaseHolder {
  readonly cashierId: number;
  readonly cashierName: string;
  readonly acquiredAtMs: number;
  readonly expiresAtMs: number;
}

/** A free lease has no holder. */
export interface LeaseRecord {
  readonly holder: LeaseHolder | null;
}

export type LeaseEvent =
  | { readonly type: "ACQUIRE"; readonly holder: LeaseHolder }
  | { readonly type: "RENEW"; readonly cashierId: number; readonly expiresAtMs: number }
  | { readonly type: "RELEASE"; readonly cashierId: number }
  | { readonly type: "LAPSE" };

export const leaseMachine = setup({
  types: { context: {} as LeaseRecord, events: {} as LeaseEvent },
  guards: {
    isByHolder: ({ context, event }) => {
      switch (event.type) {
        case "ACQUIRE":
          return event.holder.cashierId === context.holder?.cashierId;
        case "RENEW":
        case "RELEASE":
          return event.cashierId === context.holder?.cashierId;
        case "LAPSE":
          return false;
      }
    },
  },
  actions: {
    hold: assign(({ context, event }) => (event.type === "ACQUIRE" ? { holder: event.holder } : context)),
    extend: assign(({ context, event }) => {
      if (context.holder === null) return context;
      if (event.type === "RENEW") return { holder: { ...context.holder, expiresAtMs: event.expiresAtMs } };
      if (event.type === "ACQUIRE") return { holder: { ...context.holder, expiresAtMs: event.holder.expiresAtMs } };
      return context;
    }),
    free: assign({ holder: null }),
  },
}).createMachine({
  id: "lease",
  initial: "free",
  context: { holder: null },
  states: {
    free: { on: { ACQUIRE: { target: "held", actions: "hold" } } },
    held: {
      on: {
        ACQUIRE: { guard: "isByHolder", target: "held", actions: "extend" },
        RENEW: { guard: "isByHolder", target: "held", actions: "extend" },
        RELEASE: { guard: "isByHolder", target: "free", actions: "free" },
        LAPSE: { target: "free", actions: "free" },
      },
    },
  },
});

export type LeaseState = "free" | "held";
export const LEASE_STATES = ["free", "held"] as const satisfies readonly LeaseState[];
