/** The rows about payment providers: their callbacks, the owner's configs, and the money that does not fit. */
import {
  attributeIssueBodySchema,
  closeIssueBodySchema,
  ISSUE_CONFLICT_WORDS,
  issueSchema,
  issuesQuerySchema,
  issuesSchema,
} from "./contract/issue.ts";
import {
  callbackBodySchema,
  callbackHeadersSchema,
  callbackReplySchema,
  changeProviderConfigBodySchema,
  createProviderConfigBodySchema,
  newProviderConfigSchema,
  providerConfigSchema,
  providerConfigsQuerySchema,
  providerConfigsSchema,
  rotateSecretBodySchema,
} from "./contract/provider.ts";
import { providerEventsSchema } from "./contract/timeline.ts";
import { listOwnProviderEvents } from "./handlers/backoffice/audit-trail.ts";
import {
  changeOwnProviderConfig,
  createOwnProviderConfig,
  listOwnProviderConfigs,
  rotateOwnProviderSecret,
} from "./handlers/backoffice/provider-configs.ts";
import { takeCallback } from "./handlers/provider/receive-callback.ts";
import { attributeOwnIssue, closeOwnIssue, listOwnIssues } from "./handlers/reconciliation/issues.ts";
import { pageOfTrailQuery } from "./http/page.ts";
import { anyone, type Route, rawBodyRoute, route, session } from "./http/route.ts";

const owner = session("organization.manage");
const operator = session("reconciliation.manage");
const configs = "/api/backoffice/v1/provider-configs/" as const;
const config = `${configs}{config_id}` as const;
const issues = "/api/reconciliation/v1/issues/" as const;
const issue = `${issues}{issue_id}` as const;

const issueReply = { 200: { description: "The issue after this.", schema: issueSchema } };

export const providerRoutes: readonly Route[] = [
  rawBodyRoute({
    method: "POST",
    path: "/api/providers/v1/{config_id}/callback/",
    operation: "receiveCallback",
    tag: "provider",
    summary: "Tell what became of a payment",
    description:
      "The header `X-Provider-Signature: t=<unix seconds>,v1=<hex>` carries HMAC-SHA256 over `<t>.<raw body>`. A duplicate gets the same answer again, byte for byte, whatever has happened since. A signature that does not fit and a config that does not exist are answered alike. A body over 16 KiB is refused unread, whatever its signature: it is recorded and counted as refused, and what it says is not heard. Repeat after 429 and 5xx.",
    who: anyone,
    rawBody: true,
    signedBody: callbackBodySchema,
    headers: callbackHeadersSchema,
    replies: {
      200: { description: "Recorded; what it says may still have become an issue.", schema: callbackReplySchema },
    },
    errors: ["signature_invalid", "throttled"],
    handler: takeCallback,
  }),
  route({
    method: "GET",
    path: configs,
    operation: "listProviderConfigs",
    tag: "backoffice",
    summary: "List the payment providers",
    description: "Oldest first; their secrets are named, never shown.",
    who: owner,
    query: providerConfigsQuerySchema,
    replies: { 200: { description: "By id.", schema: providerConfigsSchema } },
    errors: [],
    handler: listOwnProviderConfigs,
  }),
  route({
    method: "POST",
    path: configs,
    operation: "createProviderConfig",
    tag: "backoffice",
    summary: "Add a payment provider",
    description: "For dynamic QR at the stations of one filial. Secrets are stored encrypted and never shown again.",
    who: owner,
    body: createProviderConfigBodySchema,
    replies: { 201: { description: "The config, with secrets that were made.", schema: newProviderConfigSchema } },
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: createOwnProviderConfig,
  }),
  route({
    method: "PATCH",
    path: `${config}/`,
    operation: "changeProviderConfig",
    tag: "backoffice",
    summary: "Change, disable or enable a payment provider",
    description:
      "Disabled, it is asked for no further payment and the route `dynamic_qr` is withdrawn; callbacks of earlier payments are still taken.",
    who: owner,
    body: changeProviderConfigBodySchema,
    replies: { 200: { description: "The config after this.", schema: providerConfigSchema } },
    errors: ["not_found", "conflict"],
    awaitsEffect: true,
    handler: changeOwnProviderConfig,
  }),
  route({
    method: "POST",
    path: `${config}/rotate/`,
    operation: "rotateProviderSecret",
    tag: "backoffice",
    summary: "Replace a secret of a payment provider",
    description: "Callbacks signed with the old one are taken until the overlap is over.",
    who: owner,
    body: rotateSecretBodySchema,
    replies: { 200: { description: "The config, with the secret if it was made.", schema: newProviderConfigSchema } },
    errors: ["not_found", "conflict"],
    handler: rotateOwnProviderSecret,
  }),
  route({
    method: "GET",
    path: "/api/backoffice/v1/provider-events/",
    operation: "listProviderEvents",
    tag: "backoffice",
    summary: "Read who changed a payment provider, or settled money that does not fit",
    description:
      "The audit trail of provider configs, their secrets, and issues: who added, changed or rotated one, and who attributed or closed which issue, with the reason. Kill switches, those of providers as well, are in the other trail, `/api/backoffice/v1/events/`. Newest first; who follows it asks with the last event's id as `since_id`, and misses none.",
    who: owner,
    query: pageOfTrailQuery,
    replies: { 200: { description: "By id.", schema: providerEventsSchema } },
    errors: [],
    handler: listOwnProviderEvents,
  }),
  route({
    method: "GET",
    path: issues,
    operation: "listIssues",
    tag: "reconciliation",
    summary: "List the money that does not fit",
    description: "Each kind names what differs; nothing of it has paid an order by itself.",
    who: operator,
    query: issuesQuerySchema,
    replies: { 200: { description: "Newest first.", schema: issuesSchema } },
    errors: [],
    handler: listOwnIssues,
  }),
  route({
    method: "POST",
    path: `${issue}/attribute/`,
    operation: "attributeIssue",
    tag: "reconciliation",
    summary: "Pay an order with it after all",
    description: `Through the payment seam: amount and currency must be the order's, the order unpaid and not just being collected, and of the filial whose account has the money. Money pays once. ${ISSUE_CONFLICT_WORDS}`,
    who: operator,
    body: attributeIssueBodySchema,
    replies: issueReply,
    errors: ["not_found", "conflict", "order_unknown", "order_already_paid", "order_changed", "order_voided"],
    handler: attributeOwnIssue,
  }),
  route({
    method: "POST",
    path: `${issue}/close/`,
    operation: "closeIssue",
    tag: "reconciliation",
    summary: "Close it, resolved outside",
    description: `For money that was paid back, or that another system accounts for; the reason stays in the trail, and the money pays nothing any more. ${ISSUE_CONFLICT_WORDS}`,
    who: operator,
    body: closeIssueBodySchema,
    replies: issueReply,
    errors: ["not_found", "conflict"],
    handler: closeOwnIssue,
  }),
];
