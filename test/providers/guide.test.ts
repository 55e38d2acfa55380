/** The guide for providers: the service accepts its examples. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { verifySignature } from "../../services/providers/adapters/callback-signature.ts";
import { emvcoGeneric } from "../../services/providers/adapters/emvco-generic.ts";

const GUIDE = readFileSync(join(import.meta.dirname, "..", "..", "docs", "providers.md"), "utf8");

function block(language: string, holding: string): string {
  const found = [...GUIDE.matchAll(/```(\w+)\n([^`]*)```/g)].find(
    (one) => one[1] === language && one[2]?.includes(holding),
  );
  if (found?.[2] === undefined) throw new Error(`The guide shows no ${language} with ${holding}.`);
  return found[2];
}

test("the settings in the guide are accepted", () => {
  const { settings, secrets } = JSON.parse(block("json", "merchant_account")) as Record<string, unknown>;
  expect(() => emvcoGeneric.checkSettings(settings as Record<string, unknown>)).not.toThrow();
  expect(secrets).toEqual({ callback_secret: expect.stringMatching(/^[\x21-\x7e]{16,256}$/) });
});

test("the service reads every field of the callback in the guide", () => {
  const event = emvcoGeneric.decode(Buffer.from(block("json", "payment.paid")));
  expect(event).toEqual({
    eventId: "evt-1",
    type: "payment.paid",
    effect: {
      kind: "paid",
      money: {
        reference: "the reference label",
        providerReference: "your own name of the money",
        account: "M-1",
        amountMinor: "1250",
        currency: "EUR",
        said: expect.stringContaining('"amount":"12.50"') as string,
      },
    },
  });
});

test("the guide's shell lines make a valid signature, with the secret's text as the key", () => {
  const [clock = "", signing = ""] = block("sh", "openssl").split("\n");
  const body = '{"id":"evt-1"}';
  const secret = "an unchanged secret";
  const header = execFileSync("sh", ["-c", `${clock}\n${signing}\nprintf 't=%s,v1=%s' "$t" "$v1"`], {
    env: { ...process.env, BODY: body, SECRET: secret },
    encoding: "utf8",
  });
  expect(verifySignature({ header, body: Buffer.from(body) }, [secret], Date.now())).toBe("valid");
});
