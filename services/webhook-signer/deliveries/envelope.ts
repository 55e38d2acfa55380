/** The body of a delivery (contract, "Webhook envelope"). */

/** One type and its payload, as the contract lists them. */
export interface EnvelopeFacts {
  readonly deliveryId: number;
  readonly eventType: string;
  /** ISO 8601 with milliseconds, UTC. */
  readonly createdAt: string;
  readonly payload: object;
}

/** The bytes that are stored, signed and sent: made once, the same in each attempt. */
export function envelope({ deliveryId, eventType, createdAt, payload }: EnvelopeFacts): string {
  return JSON.stringify({ delivery_id: deliveryId, event_type: eventType, created_at: createdAt, payload });
}
