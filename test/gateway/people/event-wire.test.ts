/** The API shows events of the log in snake_case, with decimal amounts and ISO times, also fields of later versions. */
import { describe, expect, it } from "vitest";
import { eventDataJson } from "../../../gateway/api/backoffice/events.ts";

describe("the JSON of an event's facts", () => {
  it("names and values: converted to the units of the API", () => {
    const event = {
      type: "intent_created",
      intentId: 7,
      route: "smart_pos",
      amountMinor: "2500",
      currency: "EUR",
      deviceId: null,
      expiresAtMs: Date.UTC(2026, 10, 20, 12),
    };
    expect(eventDataJson(event)).toEqual({
      intent_id: 7,
      route: "smart_pos",
      amount: "25.00",
      currency: "EUR",
      device_id: null,
      expires_at: "2026-11-20T12:00:00.000Z",
    });
  });

  it("texts of a device: not changed", () => {
    const event = { type: "outcome_reported", providerReference: "Ref-Ms", providerCode: "00", currency: "not money" };
    expect(eventDataJson(event)).toEqual({ provider_reference: "Ref-Ms", provider_code: "00", currency: "not money" });
  });
});
