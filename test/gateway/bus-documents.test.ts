/** The AsyncAPI document of the bus equals what the code publishes. `webhook-documents.test.ts` runs two linters on it. */
import { readFileSync } from "node:fs";
import { Ajv } from "ajv";
import { describe, expect, test } from "vitest";
import { BUS_ASYNCAPI_FILE } from "../../gateway/api/meta/pages.ts";
import { busAsyncApiText, EXAMPLE_ISSUE_EVENT } from "../../gateway/http/documents/asyncapi-bus.ts";
import { ISSUE_EVENT_TYPES, publishedIssueEventSchema } from "../../services/bus/messages/issues.ts";

const text = readFileSync(BUS_ASYNCAPI_FILE, "utf8");
const document = JSON.parse(text) as {
  readonly channels: Readonly<Record<string, { readonly address: string; readonly description: string }>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
};

describe("the AsyncAPI document of the bus", () => {
  test("equals the schemas' document; after a change run `npm run openapi`", () => {
    expect(text === busAsyncApiText()).toBe(true);
  });

  test("names the subject and each type of its events", () => {
    const { issueEvents } = document.channels;
    expect(issueEvents?.address).toBe("issues.event.{organizationId}");
    for (const type of ISSUE_EVENT_TYPES) expect(issueEvents?.description).toContain(`\`${type}\``);
  });

  test("has an example that fits the document's schema and the code's schema", () => {
    const check = new Ajv({ strict: false }).compile(document.components.schemas["PublishedIssueEvent"] ?? {});
    expect(check(EXAMPLE_ISSUE_EVENT), JSON.stringify(check.errors)).toBe(true);
    expect(check({ ...EXAMPLE_ISSUE_EVENT, eventId: "1" })).toBe(false);
    expect(publishedIssueEventSchema.parse(EXAMPLE_ISSUE_EVENT)).toEqual(EXAMPLE_ISSUE_EVENT);
  });
});
