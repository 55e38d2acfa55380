/**
 * The AsyncAPI 3 document of the bus: the subjects to which programs inside an installation can subscribe at its NATS servers.
 * It is made from the services' schemas, and checked in as `asyncapi-bus.json`.
 */
import { z } from "zod";
import { type PublishedIssueEvent, publishedIssueEventSchema } from "../../../services/bus/messages/issues.ts";
import { ISSUE_EVENTS } from "../../../services/bus/streams.ts";
import { issueEventSubject } from "../../../services/bus/subjects.ts";
import { VERSION } from "../../../services/runtime/version.ts";

const DESCRIPTION = `The subjects to which programs inside an installation can subscribe at its NATS servers, with the credentials of the operator. Everything else on the bus belongs to the services, and may change with each version.

The list of issues is authoritative: a program reads it when it starts, and when the stream no longer has all messages since its last one.`;

const PUBLICATION = `One message for up to 200 issues of one organization that one transaction has opened, changed or closed, in the order of the transactions. The service writes the message in that transaction, and the relay publishes it after the commit: no event is lost, and no event is about a change that was rolled back. The stream \`${ISSUE_EVENTS.name}\` keeps the newest ${ISSUE_EVENTS.maxMessagesPerSubject} of each organization.

A message may be delivered twice; the same event has the same \`eventId\`, which grows within an organization. A program that handles each \`eventId\` once handles each event exactly once.

\`issues_opened\`: the issue is new, or open again because a decision was undone or its cause came back. \`issues_changed\`: its evidence, its assignee or the proposal of its attribution has changed. \`issues_closed\`: it was attributed or closed, or it ended because its cause is gone. \`status\` is the status at that moment; read the details with \`GET /api/reconciliation/v1/issues/{issue_id}/\`.`;

export const EXAMPLE_ISSUE_EVENT: PublishedIssueEvent = {
  eventId: 1_042,
  event: {
    type: "issues_opened",
    organizationId: 1,
    issues: [
      {
        issueId: 42,
        kind: "unmatched_money",
        status: "open",
        accountKey: "provider:1",
        stationId: null,
        supersedesId: null,
      },
    ],
  },
};
const SECURITY = { $ref: "#/components/securitySchemes/natsUser" };
const HEADERS = { "Nats-Msg-Id": "outbox:1042" };

function buildBusAsyncApi(): object {
  const { $schema: _dialect, ...payload } = z.toJSONSchema(publishedIssueEventSchema, { target: "draft-7" });
  return {
    asyncapi: "3.0.0",
    id: "urn:device-payments:bus",
    info: {
      title: "Device Payments Bus",
      version: VERSION,
      description: DESCRIPTION,
      contact: { name: "The operator of this installation" },
      license: { name: "Proprietary" },
      tags: [{ name: "reconciliation", description: "Differences of provider callbacks and of statements." }],
    },
    defaultContentType: "application/json",
    servers: {
      bus: {
        host: "{host}",
        protocol: "nats",
        description: "A NATS server of the installation, with JetStream.",
        variables: { host: { description: "As in `NATS_URL`.", default: "nats.internal:4222" } },
        security: [SECURITY],
      },
    },
    channels: {
      issueEvents: {
        address: issueEventSubject(0).replace("0", "{organizationId}"),
        title: "Issues of an organization",
        description: PUBLICATION,
        servers: [{ $ref: "#/servers/bus" }],
        parameters: { organizationId: { description: "The organization's id.", examples: ["1"] } },
        messages: { IssueEvent: { $ref: "#/components/messages/IssueEvent" } },
      },
    },
    operations: {
      sendIssueEvent: {
        action: "send",
        channel: { $ref: "#/channels/issueEvents" },
        title: "Issues were opened, changed or closed",
        summary: "Issues were opened, changed or closed",
        description: "By a callback, a poll of the provider, a reconciliation run or a person.",
        security: [SECURITY],
        messages: [{ $ref: "#/channels/issueEvents/messages/IssueEvent" }],
      },
    },
    components: {
      messages: {
        IssueEvent: {
          name: "issue_event",
          title: "Issues were opened, changed or closed",
          summary: "Issues of one organization that one transaction has changed.",
          contentType: "application/json",
          headers: {
            type: "object",
            required: ["Nats-Msg-Id"],
            properties: {
              "Nats-Msg-Id": {
                type: "string",
                description: "`outbox:` and the `eventId`.",
                pattern: "^outbox:[1-9][0-9]*$",
              },
            },
          },
          payload: { $ref: "#/components/schemas/PublishedIssueEvent" },
          examples: [
            {
              name: "IssueEventExample",
              summary: "A callback has opened an issue.",
              headers: HEADERS,
              payload: EXAMPLE_ISSUE_EVENT,
            },
          ],
        },
      },
      schemas: { PublishedIssueEvent: payload },
      securitySchemes: {
        natsUser: { type: "userPassword", description: "A user of the NATS servers who may read the stream." },
      },
    },
  };
}

/** The bytes that are checked in. */
export const busAsyncApiText = (): string => `${JSON.stringify(buildBusAsyncApi(), null, 2)}\n`;
