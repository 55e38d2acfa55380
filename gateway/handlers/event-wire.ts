/** Events of the log for the wire: snake_case, decimal amounts, ISO times. */
import type { z } from "zod";
import { formatAmount } from "../../machines/currency.ts";
import type { AuditEvent } from "../../services/bus/messages/audit.ts";
import type { stationEventSchema } from "../contract/timeline.ts";
import { actorJson, toTimestamp } from "../http/shared-schemas.ts";

export function stationEventWire(event: AuditEvent): z.infer<typeof stationEventSchema> {
  const { version, ordinal, atMs, type, actor, intentId, data } = event;
  return {
    version,
    ordinal,
    at: toTimestamp(atMs),
    type,
    actor: actorJson(actor),
    intent_id: intentId,
    data: eventDataWire(data),
  };
}

/**
 * An event's own facts. The log's names say what a value is (`…Ms` is a moment, `amountMinor` is money), so that an
 * event of a later version needs no change here.
 */
export function eventDataWire(data: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const currency = data["currency"];
  const entries = Object.entries(data)
    .filter(([key]) => key !== "type")
    .map(([key, value]): [string, unknown] => {
      if (key.endsWith("Ms") && typeof value === "number") return [snakeCase(key.slice(0, -2)), toTimestamp(value)];
      if (key.endsWith("Minor") && typeof value === "string" && typeof currency === "string")
        return [snakeCase(key.slice(0, -5)), formatAmount(value, currency)];
      return [snakeCase(key), isRecord(value) ? eventDataWire(value) : value];
    });
  return Object.fromEntries(entries);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
