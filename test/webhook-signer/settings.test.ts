/** What an operator may set about the webhook signer. */
import { expect, test } from "vitest";
import { signerSettingsSchema } from "../../services/webhook-signer/settings.ts";

const days = (text: string) => signerSettingsSchema.shape.WEBHOOK_RETENTION_DAYS.safeParse(text).data;

test("deliveries are kept for a whole number of days from 1 to 365", () => {
  expect(["1", "30", "365"].map(days)).toEqual([1, 30, 365]);
  expect(["0", "0.5", "1.5", "366", "-1", "month"].map(days)).toEqual(Array.from({ length: 6 }, () => undefined));
});
