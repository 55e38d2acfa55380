/** What the documents promise about webhooks, compared with the limits of the service that sends them. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { ASYNCAPI_FILE, OPENAPI_FILE } from "../../gateway/api/meta/pages.ts";
import { BOUNDS } from "../../services/bus/bounds.ts";
import { SIGNER_LIMITS, TARGET_LIMITS } from "../../services/webhook-signer/limits.ts";

const DAY_MS = 24 * 3_600_000;
const NUMBERS = ["none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
const inWords = (count: number): string => NUMBERS[count] ?? (count === 20 ? "twenty" : String(count));

/** A wait in the format of the documents: 5 s, 2 min, 12 h. */
function written(ms: number): string {
  if (ms < 60_000) return `${ms / 1_000} s`;
  return ms < 3_600_000 ? `${ms / 60_000} min` : `${ms / 3_600_000} h`;
}

const asyncApi = JSON.parse(readFileSync(ASYNCAPI_FILE, "utf8")) as { readonly info: { readonly description: string } };
interface Answers {
  readonly responses: Readonly<Record<string, { readonly description: string }>>;
}
interface Schema {
  readonly properties: Readonly<Record<string, { readonly description: string }>>;
}
const openApi = JSON.parse(readFileSync(OPENAPI_FILE, "utf8")) as {
  readonly webhooks: Readonly<Record<string, { readonly post: Answers }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly description: string }>>>>;
};
const { retryAfterMs, longestRetryAfterMs, failingToDisableMs, failuresToDisable, failuresToOpen } = SIGNER_LIMITS;

describe("the AsyncAPI document's promises about webhooks", () => {
  it("states how long an attempt may take, and how often and for how long it is repeated", () => {
    const { description } = asyncApi.info;
    expect(description).toContain(`within ${inWords(TARGET_LIMITS.attemptMs / 1_000)} seconds the service tries again`);
    const days = Math.ceil(retryAfterMs.reduce<number>((sum, ms) => sum + ms, 0) / DAY_MS);
    expect(description).toContain(`tries again, ${inWords(retryAfterMs.length)} times over ${inWords(days)} days`);
  });
});

describe("the OpenAPI document's promises about webhooks", () => {
  const answersOf = (eventType: string) => openApi.webhooks[eventType]?.post.responses ?? {};

  it("states when an event that was not accepted is sent again", () => {
    const waits = retryAfterMs.map(written);
    const schedule = `${waits.slice(0, -1).join(", ")} and ${waits.at(-1)}`;
    const answers = answersOf("serving_task.offered");
    expect(answers["default"]?.description).toContain(`tried again after about ${schedule},`);
    expect(longestRetryAfterMs).toBe(3_600_000);
    expect(answers["default"]?.description).toMatch(/`Retry-After` asks for it, up to an hour\.$/);
    expect(answers["2XX"]?.description).toContain(`after ${inWords(TARGET_LIMITS.attemptMs / 1_000)} seconds`);
  });

  it("states that only a test is not sent again", () => {
    expect(answersOf("webhook.test")["default"]?.description).toMatch(/it is not tried again\.$/);
    for (const [eventType, { post }] of Object.entries(openApi.webhooks)) {
      const isRepeated = /tried again after about/.test(post.responses["default"]?.description ?? "");
      expect(isRepeated, eventType).toBe(eventType !== "webhook.test");
    }
  });

  it("states when an endpoint gets no requests, and when it is disabled", () => {
    const endpoint = openApi.components.schemas["WebhookEndpoint"]?.properties ?? {};
    const days = inWords(failingToDisableMs / DAY_MS);
    expect(endpoint["disabled_reason"]?.description).toContain(
      `no success for ${days} days and ${inWords(failuresToDisable)} failures`,
    );
    expect(endpoint["open_until"]?.description).toContain(`After ${inWords(failuresToOpen)} failures in a row`);
  });

  it("states how many endpoints a consumer has, and how much of an answer is read", () => {
    const register = openApi.paths["/api/backoffice/v1/webhook-endpoints/"]?.["post"];
    expect(register?.description).toContain(`has ${inWords(SIGNER_LIMITS.endpointsPerConsumer)} endpoints at most`);
    const { truncated } = openApi.components.schemas["WebhookAttempt"]?.properties ?? {};
    expect(truncated?.description).toContain(`the ${TARGET_LIMITS.answerBytes / 1_024} KiB that the service reads`);
    expect(BOUNDS.secretOverlapMs / DAY_MS).toBe(7);
  });
});
