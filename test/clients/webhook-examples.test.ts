/** The signed examples of the documents: whoever tries a verifier on them must find them genuine. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { verifyWebhook } from "../../clients/webhook-verifier.ts";
import { ASYNCAPI_FILE } from "../../gateway/api/meta/pages.ts";
import { DELIVERY_EVENT_TYPES } from "../../services/bus/messages/webhook-deliveries.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const HEADER = "X-Service-Robotics-Signature";

interface Example {
  readonly summary: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly payload: unknown;
}
const asyncApi = JSON.parse(readFileSync(ASYNCAPI_FILE, "utf8")) as {
  readonly components: {
    readonly messages: Record<string, { readonly name: string; readonly examples: readonly Example[] }>;
    readonly schemas: { readonly WebhookHeaders: { readonly properties: Record<string, { examples?: string[] }> } };
  };
};
const guide = readFileSync(join(CHECKOUT, "docs", "webhooks.md"), "utf8");
const { vectors } = JSON.parse(readFileSync(join(CHECKOUT, "clients", "webhook-vectors.json"), "utf8")) as {
  readonly vectors: readonly { readonly secrets: readonly string[]; readonly now_seconds: number }[];
};
const SECRET = vectors[0]?.secrets[0] as string;

/** The secret and the time that a text names, which is all that a reader has to go by. */
function namedIn(text: string): { readonly secrets: string[]; readonly nowMs: number } {
  return {
    secrets: [/whsec_\w+/.exec(text)?.[0] ?? "none"],
    nowMs: Number(/\bt=(\d+)/.exec(text)?.[1]) * 1_000,
  };
}

describe("the examples of the AsyncAPI document", () => {
  const examples = Object.values(asyncApi.components.messages).flatMap(({ name, examples: of }) =>
    of.map((example) => ({ name, example })),
  );

  it("are one for each type of event", () => {
    expect(examples.map(({ name }) => name).toSorted()).toEqual(DELIVERY_EVENT_TYPES.toSorted());
  });

  it.each(examples)("are genuine by the secret and the time that they name: $name", ({ example }) => {
    const { secrets, nowMs } = namedIn(example.summary);
    const body = JSON.stringify(example.payload);
    const header = example.headers[HEADER];
    expect(secrets).toEqual([SECRET]);
    expect(verifyWebhook({ header, body, secrets, nowMs })).toBe("valid");
    expect(verifyWebhook({ header, body: `${body} `, secrets, nowMs })).toBe("signature_wrong");
  });

  it("have the header's own example among them", () => {
    const shown = asyncApi.components.schemas.WebhookHeaders.properties[HEADER]?.examples ?? [];
    expect(shown).toHaveLength(1);
    expect(examples.map(({ example }) => example.headers[HEADER])).toContain(shown[0]);
  });
});

it("the guide's example is genuine by the secret that stands beside it", () => {
  const [, header, body, after = ""] =
    /^X-Service-Robotics-Signature: (\S+)\n\n(\{.*\})\n```\n\n([^\n]*)/m.exec(guide) ?? [];
  const { secrets } = namedIn(after);
  const { nowMs } = namedIn(header ?? "");
  expect(secrets).toEqual([SECRET]);
  expect(verifyWebhook({ header, body: body ?? "", secrets, nowMs })).toBe("valid");
});
