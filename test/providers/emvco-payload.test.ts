/** The EMVCo payload against another implementation and against the text of the specification. */
import * as fc from "fast-check";
import { parse } from "promptparse";
import { describe, expect, test } from "vitest";
import { currencyExponent } from "../../machines/currencies.ts";
import { formatAmount } from "../../machines/currency.ts";
import {
  crc16,
  currencyNumber,
  type MerchantData,
  merchantDataSchema,
  merchantPayload,
  tlv,
} from "../../services/providers/adapters/emvco-payload.ts";
import { newReference } from "../../services/providers/payments.ts";

const printable = (max: number) =>
  fc
    .string({
      unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
      minLength: 1,
      maxLength: max,
    })
    .filter((text) => text.trim() === text && text !== "");

const merchants: fc.Arbitrary<MerchantData> = fc.record(
  {
    merchant_account: fc.record(
      {
        tag: fc.integer({ min: 26, max: 51 }).map(String),
        guid: printable(32),
        merchant_id: printable(35),
        terminal_id: printable(8),
      },
      { requiredKeys: ["tag", "guid", "merchant_id"] },
    ),
    category_code: fc.integer({ min: 0, max: 9999 }).map((code) => String(code).padStart(4, "0")),
    country: fc.constantFrom("DE", "TH", "ID", "BR"),
    merchant_name: printable(25),
    merchant_city: printable(15),
    postal_code: printable(10),
  },
  { requiredKeys: ["merchant_account", "category_code", "country", "merchant_name", "merchant_city"] },
);
const currencies = fc.constantFrom("EUR", "THB", "IDR", "JPY", "KWD", "BRL");
const amounts = fc.bigInt({ min: 0n, max: 9_999_999_999n }).map((amount) => amount * 10n);

const MERCHANT: MerchantData = {
  merchant_account: { tag: "26", guid: "com.example.pay", merchant_id: "M-1" },
  category_code: "5812",
  country: "DE",
  merchant_name: "Bistro",
  merchant_city: "Berlin",
};

describe("an EMVCo payload", () => {
  test("any merchant and amount: another implementation reads the written fields", () => {
    fc.assert(
      fc.property(merchants, currencies, amounts, (merchant, currency, amount) => {
        expect(merchantDataSchema.parse(merchant)).toEqual(merchant);
        const reference = newReference();
        const payload = merchantPayload(merchant, { amountMinor: amount.toString(), currency, reference });
        // In strict mode, the other implementation checks the CRC over everything before it.
        const read = parse(payload, true, true);
        expect(read).not.toBeNull();
        const { tag, guid, merchant_id, terminal_id } = merchant.merchant_account;
        expect(read?.getTagValue("00")).toBe("01");
        expect(read?.getTagValue("01")).toBe("12");
        expect(read?.getTagValue(tag, "00")).toBe(guid);
        expect(read?.getTagValue(tag, "01")).toBe(merchant_id);
        expect(read?.getTagValue(tag, "02")).toBe(terminal_id);
        expect(read?.getTagValue("52")).toBe(merchant.category_code);
        expect(read?.getTagValue("53")).toBe(currencyNumber(currency));
        expect(read?.getTagValue("54")).toBe(formatAmount(amount, currency));
        expect(read?.getTagValue("58")).toBe(merchant.country);
        expect(read?.getTagValue("59")).toBe(merchant.merchant_name);
        expect(read?.getTagValue("60")).toBe(merchant.merchant_city);
        expect(read?.getTagValue("61")).toBe(merchant.postal_code);
        expect(read?.getTagValue("62", "05")).toBe(reference);
      }),
      { numRuns: 300 },
    );
  });

  test("one character is changed: another implementation refuses it", () => {
    const payload = merchantPayload(MERCHANT, { amountMinor: "1250", currency: "EUR", reference: newReference() });
    expect(parse(payload, true)).not.toBeNull();
    for (const index of [20, 60, payload.length - 1]) {
      const other = payload[index] === "0" ? "1" : "0";
      expect(parse(`${payload.slice(0, index)}${other}${payload.slice(index + 1)}`, true)).toBeNull();
    }
  });

  test("ends in the CRC of the specification: CRC-16/CCITT-FALSE over everything with 6304", () => {
    expect(crc16("123456789")).toBe("29B1");
    const payload = merchantPayload(MERCHANT, { amountMinor: "1250", currency: "EUR", reference: "REF" });
    expect(payload).toMatch(/^000201010212.*6304[0-9A-F]{4}$/);
    expect(payload.slice(-4)).toBe(crc16(payload.slice(0, -4)));
  });

  test("every currency that an order may have has a number", () => {
    const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".split("");
    const codes = letters.flatMap((a) => letters.flatMap((b) => letters.map((c) => a + b + c)));
    const known = codes.filter((code) => currencyExponent(code) !== undefined);
    expect(known.length).toBeGreaterThan(150);
    expect(known.filter((code) => !/^\d{3}$/.test(currencyNumber(code) ?? ""))).toEqual([]);
    expect(new Set(known.map(currencyNumber)).size).toBe(known.length);
    expect(currencyNumber("EUR")).toBe("978");
    expect(currencyNumber("JPY")).toBe("392");
    expect(currencyNumber("constructor")).toBeUndefined();
  });

  test("a text that is empty, too long or not plain ASCII: refused", () => {
    expect(() => tlv("59", "Café")).toThrow(RangeError);
    expect(() => tlv("59", "")).toThrow(RangeError);
    expect(() => tlv("59", "x".repeat(100))).toThrow(RangeError);
    expect(merchantDataSchema.safeParse({ ...MERCHANT, merchant_name: "Café" }).success).toBe(false);
    expect(merchantDataSchema.safeParse({ ...MERCHANT, extra: 1 }).success).toBe(false);
  });
});

test("references: 24 characters each, and a thousand of them are all different", () => {
  const references = Array.from({ length: 1_000 }, newReference);
  expect(new Set(references).size).toBe(1_000);
  for (const reference of references) expect(reference).toMatch(/^[0-9A-HJKMNP-TV-Z]{24}$/);
});
