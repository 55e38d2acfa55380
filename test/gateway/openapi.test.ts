/** The OpenAPI document: it equals the route table, two linters accept it, and it follows the contract. */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { OPENAPI_FILE } from "../../gateway/api/meta/pages.ts";
import { errorCodesOf } from "../../gateway/http/documents/error-replies.ts";
import { buildDocument, documentText } from "../../gateway/http/documents/openapi.ts";
import { ERRORS, type ErrorCode, HTTP_ERROR_CODES, PUBLISHED_ERROR_CODES } from "../../gateway/http/errors.ts";
import { routes } from "../../gateway/routes.ts";
import { PAID_SHOWN_MS } from "../../machines/settings.ts";
import { aServedCounter, ORDER } from "../machines/scenario.ts";
import { DEVICES } from "../support/devices.ts";
import { runProgram } from "../support/running-program.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");
const text = readFileSync(OPENAPI_FILE, "utf8");

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly description?: string;
  readonly minimum?: number;
  readonly examples?: readonly Record<string, unknown>[];
}
interface Operation {
  readonly operationId: string;
  readonly security: readonly object[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly description?: string }[];
  readonly responses: Record<
    string,
    {
      readonly description?: string;
      readonly content?: Record<string, { readonly schema: Schema }>;
      readonly headers?: Record<string, { readonly description?: string; readonly required?: boolean }>;
    }
  >;
}
const document = JSON.parse(text) as {
  readonly info: { readonly version: string; readonly description: string };
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, Schema>; readonly responses: Record<string, object> };
  readonly "x-error-codes": Record<string, { readonly status: number }>;
};

function schemaOf(schema: Schema | undefined): Schema {
  const name = schema?.$ref?.split("/").at(-1);
  return name === undefined ? (schema ?? {}) : (document.components.schemas[name] ?? {});
}
function replyOf(path: string, method: string, status: number): Schema {
  return schemaOf(document.paths[path]?.[method]?.responses[status]?.content?.["application/json"]?.schema);
}
function bodyOf(path: string): Schema {
  return schemaOf(document.paths[path]?.post?.requestBody?.content["application/json"]?.schema);
}

function requestIdHeaderOf(path: string, method: string) {
  return document.paths[path]?.[method]?.responses["200"]?.headers?.["X-Request-Id"];
}

describe("the checked-in OpenAPI document", () => {
  it("equals the route table's document; after a change run `npm run openapi`", () => {
    expect(text === documentText(buildDocument(routes))).toBe(true);
  });

  it("has every documented route, and each operation id once", () => {
    const documented = routes.filter(({ undocumented }) => undocumented !== true);
    const ids = Object.values(document.paths).flatMap((item) =>
      Object.values(item).map(({ operationId }) => operationId),
    );
    expect(ids.toSorted()).toEqual(documented.map(({ operationId }) => operationId).toSorted());
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("publishes every error code with its status", () => {
    expect(Object.keys(document["x-error-codes"]).toSorted()).toEqual(PUBLISHED_ERROR_CODES.toSorted());
    for (const code of PUBLISHED_ERROR_CODES) expect(document["x-error-codes"][code]?.status).toBe(ERRORS[code].status);
  });

  it("an operation that needs a slot, such as the public log's: may answer 500 and 503", () => {
    const needy = routes.filter(({ undocumented, needsNoSlot }) => !undocumented && !needsNoSlot);
    const silent = needy.filter(({ path, method }) => {
      const responses = document.paths[path]?.[method.toLowerCase()]?.responses;
      return responses?.["500"] === undefined || responses["503"] === undefined;
    });
    expect(silent.map(({ path }) => path)).toEqual([]);
  });
});

describe("names in the document", () => {
  it("enumerations: each has one named schema, so that a generated client has one type for it", () => {
    const inline: string[] = [];
    const visit = (value: unknown, pointer: string): void => {
      if (typeof value !== "object" || value === null) return;
      if ("enum" in value && Array.isArray(value.enum) && !/^\/components\/schemas\/\w+$/.test(pointer))
        inline.push(pointer);
      for (const [name, each] of Object.entries(value)) visit(each, `${pointer}/${name}`);
    };
    visit(document, "");
    expect(inline).toEqual([]);
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(["IntentStatus", "Outcome", "DeviceKind", "ErrorCode", "ApiError"]),
    );
  });

  it("error answers: each name contains the code or the operation, and no other number", () => {
    const names = Object.keys(document.components.responses);
    const ids = Object.values(document.paths).flatMap((item) => Object.values(item).map((each) => each.operationId));
    const pascal = (id: string): string =>
      id.replaceAll(/(?:^|_)(\w)/g, (_all, letter: string) => letter.toUpperCase());
    const ofOperations = names.filter((name) => /Error\d{3}$/.test(name));
    expect(
      ofOperations.map((name) => name.replace(/Error\d{3}$/, "")).filter((id) => !ids.map(pascal).includes(id)),
    ).toEqual([]);
    expect(names.filter((name) => /\d/.test(name) && !ofOperations.includes(name))).toEqual([]);
  });
});

describe("the document's version", () => {
  it("is the version of the package", () => {
    const { version } = JSON.parse(readFileSync(join(CHECKOUT, "package.json"), "utf8")) as { version: string };
    expect(document.info.version).toBe(version);
  });
});

describe("the document's introduction", () => {
  it("is short, because the table of error codes is the description of ErrorCode", () => {
    expect(document.info.description.length).toBeLessThan(1_200);
    expect(document.info.description).not.toContain("|");
    expect(document.components.schemas["ErrorCode"]?.description).toContain("| `handoff_not_assigned` | 404 |");
  });
});

describe("examples in the document", () => {
  it("request bodies: each has an example", () => {
    const without = Object.values(document.paths)
      .flatMap((item) => Object.values(item))
      .flatMap(({ operationId, requestBody }) =>
        Object.values(requestBody?.content ?? {}).map(({ schema }) => ({ operationId, schema: schemaOf(schema) })),
      )
      .filter(({ schema }) => (schema.examples ?? []).length === 0);
    expect(without.map(({ operationId }) => operationId)).toEqual([]);
  });

  it("successful answers to devices: each has a complete example", () => {
    const without = Object.entries(document.paths)
      .filter(([path]) => path.startsWith("/api/payments/v1/devices/"))
      .flatMap(([path, item]) => Object.keys(item).map((method) => [path, method] as const))
      .flatMap(([path, method]) =>
        [200, 201]
          .filter((status) => document.paths[path]?.[method]?.responses[status] !== undefined)
          .filter((status) => (replyOf(path, method, status).examples ?? []).length === 0)
          .map((status) => `${method} ${path} ${status}`),
      );
    expect(without).toEqual([]);
  });

  it("the answer to a report: shows an intent that is processing", () => {
    const [example] = replyOf("/api/payments/v1/devices/assignment/report/", "post", 200).examples ?? [];
    expect(example).toMatchObject({ assignment: { status: "processing" } });
  });
});

describe("the answer 304 of a poll", () => {
  it.each(["assignment", "display"])("GET %s: explained, with the accepted values of If-None-Match", (name) => {
    const operation = document.paths[`/api/payments/v1/devices/${name}/`]?.["get"];
    expect(operation?.responses["304"]?.description).toContain("keep the last 200 answer");
    const header = operation?.parameters?.find((each) => each.name === "If-None-Match");
    expect(header?.description?.includes("is always answered 200, also for `*`")).toBe(name === "assignment");
  });
});

describe("each published error code", () => {
  it("some operation answers with it", () => {
    // No operation has these two codes, because the table does not have the method or the path of such a request.
    const answered = new Set<string>(["method_not_allowed", "trailing_slash_missing", ...routes.flatMap(errorCodesOf)]);
    expect(Object.keys(document["x-error-codes"]).filter((code) => !answered.has(code))).toEqual([]);
    expect(document.components.schemas["ErrorCode"]?.enum?.toSorted()).toEqual([...answered].toSorted());
  });
});

describe("the error codes that only the gateway uses", () => {
  it("each of them occurs in a source file of the gateway", () => {
    const sources = globSync("gateway/**/*.ts", { cwd: CHECKOUT }).filter((file) => file !== "gateway/http/errors.ts");
    const gateway = sources.map((file) => readFileSync(join(CHECKOUT, file), "utf8")).join("\n");
    expect(HTTP_ERROR_CODES.filter((code) => !gateway.includes(`"${code}"`))).toEqual([]);
  });
});

describe("the document's words", () => {
  it("polls: repeat a request id only when the client sent one", () => {
    for (const poll of ["me", "assignment", "display"]) {
      const header = requestIdHeaderOf(`/api/payments/v1/devices/${poll}/`, "get");
      expect(header?.description, poll).toBe("The client's own `X-Request-Id`; only there when the client sent one.");
      expect(header?.required, poll).not.toBe(true);
    }
    expect(requestIdHeaderOf("/api/payments/v1/devices/heartbeat/", "post")).toMatchObject({ required: true });
  });

  it("a companion's `last_seen_at` and a device's capabilities: explained", () => {
    const { schemas } = document.components;
    const seen = schemas["Liveness"]?.properties?.["last_seen_at"];
    expect(seen?.description).toContain("As of the last change between online and offline");
    for (const device of ["Device", "DeviceDetail", "DeviceSnapshot", "RegisterDevice", "ChangeDevice"]) {
      const capabilities = schemas[device]?.properties?.["capabilities"];
      expect(capabilities?.description, device).toContain(
        "What a device may call is decided by the scopes of its kind.",
      );
    }
  });

  it("orders: need no lease", () => {
    const orders = [
      "/stations/{station_id}/orders/ post",
      "/orders/{order_id}/lines/ put",
      "/orders/{order_id}/void/ post",
    ];
    for (const order of orders) {
      const [path, method] = order.split(" ") as [string, string];
      const operation = document.paths[`/api/cashier/v1${path}`]?.[method];
      expect(operation?.description, order).toContain("the lease guards collections only");
    }
  });
});

describe("the document's descriptions", () => {
  const operation = (path: string, method: string) => document.paths[`/api/payments/v1/devices/${path}/`]?.[method];

  it("operations: each description contains more than the summary", () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    const brief = operations.filter(({ summary, description }) => (description ?? `${summary}.`) === `${summary}.`);
    expect(brief.map(({ operationId }) => operationId)).toEqual([]);
  });

  it("parameters: each is explained, and each id in a path names an answer that contains it", () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    const parameters = operations.flatMap(({ operationId, parameters: all = [] }) =>
      all.map((parameter) => ({ operationId, ...parameter })),
    );
    const isClear = ({ in: place, name, description = "" }: (typeof parameters)[number]) =>
      description.replaceAll(`\`${name}\``, "").split(" ").length > 5 &&
      (place !== "path" || / (?:shows|carries) it/.test(description));
    expect(parameters.length).toBeGreaterThan(100);
    expect(parameters.filter((parameter) => !isClear(parameter))).toEqual([]);
  });

  it("a companion: when it polls, and what a repeated report is", () => {
    expect(operation("assignment", "get")?.description).toContain("Poll only between collections");
    expect(operation("heartbeat", "post")?.description).toContain("silent for 25 seconds counts as offline");
    const { intent_id, client_idempotency_key } =
      bodyOf("/api/payments/v1/devices/assignment/report/").properties ?? {};
    expect(client_idempotency_key?.description).toContain("use a new key for new evidence");
    // The answer to an id of 0 is 404 `handoff_not_assigned`, so the document must not call 0 invalid.
    expect(intent_id?.minimum).toBeLessThan(0);
  });

  it("a display: how long it shows a paid order", () => {
    expect(operation("display", "get")?.description).toContain(`for ${PAID_SHOWN_MS / 1_000} seconds`);
  });
});

describe("the linters", () => {
  const lint = async (command: string, args: string[]): Promise<{ exit: unknown; output: string }> => {
    const env = { ...process.env, REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true", CI: "true" };
    const program = runProgram(join(CHECKOUT, "node_modules", ".bin", command), args, { cwd: CHECKOUT, env });
    return { exit: await program.ended, output: program.output() };
  };
  const file = "gateway/http/documents/openapi.json";

  it("Redocly finds no error and no warning", async () => {
    const { exit, output } = await lint("redocly", [
      "lint",
      file,
      "--config",
      "test/gateway/redocly.yaml",
      "--format",
      "json",
    ]);
    const report = JSON.parse(output.slice(output.indexOf("{"), output.lastIndexOf("}") + 1)) as {
      problems: unknown[];
    };
    expect(report.problems).toEqual([]);
    expect(exit).toBe(0);
  });

  it("Spectral finds no error and no warning", async () => {
    const { exit, output } = await lint("spectral", ["lint", file, "-r", "test/gateway/spectral.yaml", "-F", "warn"]);
    expect(output).toContain("No results with a severity of 'warn' or higher found!");
    expect(exit).toBe(0);
  });
});

describe("the device API follows the contract", () => {
  it.each([
    ["payments_device_enroll", "post", "enroll/", false],
    ["payments_device_heartbeat", "post", "heartbeat/", true],
    ["payments_device_self", "get", "me/", true],
    ["payments_device_assignment", "get", "assignment/", true],
    ["payments_device_handoff_report", "post", "assignment/report/", true],
    ["payments_device_display", "get", "display/", true],
  ])("%s: has the contract's method, path and credential", (operationId, method, path, needsCredential) => {
    const operation = document.paths[DEVICES + path]?.[method];
    expect(operation?.operationId).toBe(operationId);
    expect(operation?.security).toEqual(needsCredential ? [{ deviceCredential: [] }] : []);
  });

  const SNAPSHOT = [
    "device_id",
    "name",
    "kind",
    "capabilities",
    "status",
    "station_name",
    "station_status",
    "handoff_target",
    "blocked_reason",
    "server_time",
  ];
  const ASSIGNMENT = [
    "intent_id",
    "intent_display_number",
    "order_display_number",
    "station_name",
    "amount",
    "currency",
    "status",
    "handoff_target",
    "expires_at",
  ];
  it.each([
    ["enrollment", replyOf(`${DEVICES}enroll/`, "post", 201), ["credential", "scopes", "device"]],
    ["snapshot of heartbeat", replyOf(`${DEVICES}heartbeat/`, "post", 200), SNAPSHOT],
    ["snapshot of me", replyOf(`${DEVICES}me/`, "get", 200), SNAPSHOT],
    ["assignment reply", replyOf(`${DEVICES}assignment/`, "get", 200), ["assignment", "server_time"]],
    ["assignment", document.components.schemas.Assignment, ASSIGNMENT],
    ["report reply", replyOf(`${DEVICES}assignment/report/`, "post", 200), ["report", "assignment"]],
    [
      "reported outcome",
      document.components.schemas.ReportedOutcome,
      ["outcome", "provider_reference", "provider_code", "reported_at"],
    ],
    [
      "display state",
      replyOf(`${DEVICES}display/`, "get", 200),
      ["state", "order_display_number", "amount", "currency", "qr_payload", "intent_status", "server_time"],
    ],
  ])("the %s: exactly the contract's fields, all required", (_name, schema, fields) => {
    expect(Object.keys(schema?.properties ?? {}).toSorted()).toEqual(fields.toSorted());
    expect(schema?.required?.toSorted()).toEqual(fields.toSorted());
  });

  it("a report: exactly the contract's fields, two of them required", () => {
    const schema = bodyOf(`${DEVICES}assignment/report/`);
    expect(Object.keys(schema.properties ?? {}).toSorted()).toEqual(
      ["client_idempotency_key", "intent_id", "outcome", "provider_code", "provider_reference"].toSorted(),
    );
    expect(schema.required).toEqual(["intent_id", "outcome"]);
    expect(schemaOf(schema.properties?.outcome).enum?.toSorted()).toEqual(
      ["reported_cancelled", "reported_declined", "reported_success", "reported_unknown"].toSorted(),
    );
  });

  it("amounts have the contract's pattern, and a display has its four states", () => {
    expect(document.components.schemas.Assignment?.properties?.amount?.pattern).toBe(
      String.raw`^-?\d{0,10}(?:\.\d{0,2})?$`,
    );
    const display = replyOf(`${DEVICES}display/`, "get", 200);
    expect(schemaOf(display.properties?.state).enum).toEqual(["idle", "total", "qr", "paid"]);
  });
});

const errorsOf = (operationId: string): readonly ErrorCode[] =>
  routes.filter((route) => route.operationId === operationId).flatMap(errorCodesOf);
const operationsWith = (code: ErrorCode): readonly string[] =>
  routes.filter((route) => errorCodesOf(route).includes(code)).map(({ operationId }) => operationId);

describe("error codes of single operations", () => {
  it("already_exists: only an answer about an e-mail address, because names need not be unique", () => {
    expect(operationsWith("already_exists")).toEqual([
      "backoffice_create_user",
      "backoffice_change_user",
      "platform_create_organization",
    ]);
  });

  it("device_limit_reached: only an answer to what registers a device", () => {
    expect(operationsWith("device_limit_reached")).toEqual(["backoffice_reset_sandbox", "backoffice_register_device"]);
  });

  it("order_changed: also an answer to a collection that begins with an earlier revision of its order", () => {
    const counter = aServedCounter().order({ revision: 3 });
    expect(counter.picks("cash", { order: { ...ORDER, revision: 2 } }).reply).toEqual({
      ok: false,
      code: "order_changed",
    });
    expect(errorsOf("cashier_create_intent")).toContain("order_changed");
  });
});
