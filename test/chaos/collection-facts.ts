/** What the clients of a collection store about it. */
import type { z } from "zod";
import type { intentSchema } from "../../gateway/api/cashier/intent-json.ts";
import type { orderSchema } from "../../gateway/api/cashier/orders.ts";
import type { ApiClient, Request } from "../support/api-client.ts";
import type { ChaosStation, ChaosWorld } from "./chaos-world.ts";
import type { CollectionPlan } from "./collection-plan.ts";
import type { QrPlan } from "./qr-plan.ts";
import type { RetryingClient } from "./retrying-client.ts";

export type Order = z.infer<typeof orderSchema>;
export type Intent = z.infer<typeof intentSchema>;

/** A keyed command and the answer that it got. */
export interface Kept {
  readonly client: ApiClient;
  readonly path: string;
  readonly request: Request;
  readonly status: number;
  readonly text: string;
}

/** What the clients know of a collection after its end. */
export interface Collection {
  readonly station: ChaosStation;
  readonly plan: CollectionPlan | QrPlan;
  readonly orderId: number;
  readonly intentId: number;
  /** The state that the order must have now, and why when it is unpaid. */
  readonly orderStatus: "paid" | "voided" | "open";
  readonly intentStatus: "succeeded" | "cancelled" | "expired";
  /** The transaction in the answer to the cashier; null when unpaid. */
  readonly sale: { readonly transactionId: number; readonly amount: string; readonly reference: string } | null;
  /** The events that the log must have for the steps that were acknowledged. */
  readonly events: readonly string[];
  readonly kept: readonly Kept[];
  /** Why the provider's side ended the collection, or "". */
  readonly endReason?: string;
}

export interface CollectionDeps {
  readonly world: ChaosWorld;
  readonly retrying: RetryingClient;
  /** The client calls this at the beginning of each step. */
  step(): void;
}
