/** What the sandbox consists of. It is seeded into the same tables and behaves like everything else. */
import type { DeviceKind } from "../../machines/station/state.ts";
import type { Role } from "./permissions.ts";

export interface SandboxUser {
  readonly email: string;
  readonly name: string;
  readonly role: Role;
}

export interface SandboxStation {
  /** By this it is found again, also when the owner has renamed it. */
  readonly seed: string;
  readonly name: string;
  readonly currency: string;
  readonly devices: readonly { readonly kind: DeviceKind; readonly name: string; readonly handoffTarget: string }[];
}

const COMPANION = { kind: "smart_pos_companion", name: "Smart POS companion", handoffTarget: "sandbox-pos://collect" };
const DISPLAY = { kind: "customer_display", name: "Customer display", handoffTarget: "" };
const DEVICES = [COMPANION, DISPLAY] as SandboxStation["devices"];

export const SANDBOX = {
  organization: "Sandbox Bistro",
  filial: "Sandbox Filial",
  owner: { email: "owner@sandbox.example", name: "Sandbox Owner", role: "owner" } satisfies SandboxUser,
  cashier: { email: "cashier@sandbox.example", name: "Sandbox Cashier", role: "cashier" } satisfies SandboxUser,
  operator: {
    email: "operator@sandbox.example",
    name: "Sandbox Operator",
    role: "reconciliation_operator",
  } satisfies SandboxUser,
  stations: [
    /** For trying the API by hand. */
    { seed: "counter", name: "Sandbox Counter", currency: "EUR", devices: DEVICES },
    /** For the virtual companion and display. */
    { seed: "demo", name: "Sandbox Demo", currency: "EUR", devices: DEVICES },
  ] satisfies SandboxStation[],
} as const;
