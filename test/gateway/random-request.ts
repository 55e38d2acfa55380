/** Random requests from the OpenAPI document. Most are almost valid, so that they reach handlers; some are arbitrary. */
import { readFileSync } from "node:fs";
import { OPENAPI_FILE } from "../../gateway/api/meta/pages.ts";

export interface RandomRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface RandomSource {
  /** Tokens and credentials, by the API that accepts them. */
  readonly tokens: Readonly<
    Record<"payments" | "cashier" | "backoffice" | "reconciliation" | "robotics", readonly string[]>
  >;
  /** Ids that exist, by the name of the path's parameter. */
  readonly ids: Readonly<Record<string, readonly number[]>>;
  /** Ids of objects that may be suspended, reset and closed, by the same names. */
  readonly spareIds: Readonly<Record<string, readonly number[]>>;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
}
interface Operation {
  readonly operationId: string;
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: Schema }[];
}
const document = JSON.parse(readFileSync(OPENAPI_FILE, "utf8")) as {
  readonly paths: Record<string, Record<string, Operation>>;
  readonly components: { readonly schemas: Record<string, Schema> };
};
const operations = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
);

/** Values that no client sends on purpose. */
const ODDITIES: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  2 ** 31,
  Number.MAX_SAFE_INTEGER,
  1e308,
  "",
  " ",
  "0",
  "\u0000",
  "\ud800",
  "💳".repeat(50),
  "x".repeat(5_000),
  "' or 1=1 --",
  "{{7*7}}",
  "__proto__",
  [],
  {},
  [[[[]]]],
  { constructor: 1, toString: 2 },
  "2026-13-45T00:00:00Z",
  "NaN",
];
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "PROPFIND"];
const TYPES = [
  "application/x-www-form-urlencoded",
  "multipart/form-data; boundary=b",
  "text/plain",
  "application/xml",
  "",
];
/** Operations that end or block their object. They get spare ids only. */
const HARMFUL = /_(suspend|close|reset|revoke|void)_/;

/** Makes random requests. The same seed makes the same requests. */
export class RandomRequests {
  #state: number;
  readonly #source: RandomSource;

  constructor(seed: number, source: RandomSource) {
    this.#state = seed;
    this.#source = source;
  }

  next(): RandomRequest {
    const { path, method, operation } = this.#pick(operations);
    const sent = this.#chance(0.05) ? this.#pick(METHODS) : method;
    // A log-out would end the session of all later requests, so it gets a wrong token.
    const isLogOut = sent === "DELETE" && path.endsWith("/session/");
    const token = isLogOut ? this.#text() : this.#token(path);
    const headers: Record<string, string> = { authorization: `Bearer ${token}` };
    if (this.#chance(0.05)) delete headers.authorization;
    if (this.#chance(0.1)) headers.cookie = `a=b; dp_session=${isLogOut ? "x" : this.#token(path)}; c`;
    if (this.#chance(0.2)) headers["if-none-match"] = this.#pick(["*", 'W/"x"', '"', ",,", 'W/"a", "b"']);
    if (this.#chance(0.3)) headers["idempotency-key"] = this.#pick(["k1", "k2", "x".repeat(300), "?", " "]);
    if (this.#chance(0.1)) headers["x-request-id"] = this.#pick(["abc", "x".repeat(100), "a b", "<script>"]);
    if (this.#chance(0.05)) headers.origin = this.#pick(["null", "http://evil.example", "::"]);
    const body = this.#body(operation, headers);
    return {
      method: sent,
      path: this.#path(path, operation) + this.#query(operation),
      headers,
      body,
    };
  }

  /** In most cases a token that the path's API accepts. */
  #token(path: string): string {
    if (this.#chance(0.05)) return this.#text();
    const { tokens } = this.#source;
    const accepted = tokens[path.split("/")[2] as keyof typeof tokens];
    return this.#pick(accepted !== undefined && this.#chance(0.95) ? accepted : Object.values(tokens).flat());
  }

  #path(template: string, operation: Operation): string {
    if (this.#chance(0.02)) return `/${encodeURIComponent(this.#text())}`;
    const ids = HARMFUL.test(operation.operationId) ? this.#source.spareIds : this.#source.ids;
    return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const known = ids[name] ?? [];
      if (known.length > 0 && this.#chance(0.8)) return String(this.#pick(known));
      return this.#pick(["0", "1", "-1", "999999", "999999999999999", "abc", "1e3", "%00", "..", "1.5"]);
    });
  }

  #query(operation: Operation): string {
    const query = new URLSearchParams();
    for (const parameter of operation.parameters ?? []) {
      if (parameter.in === "query" && this.#chance(0.5))
        query.append(parameter.name, JSON.stringify(this.#value(parameter.schema)).replaceAll('"', ""));
    }
    if (this.#chance(0.05)) query.append(this.#text(), this.#text());
    return query.size === 0 ? "" : `?${query.toString()}`;
  }

  #body(operation: Operation, headers: Record<string, string>): string | undefined {
    const schema = Object.values(operation.requestBody?.content ?? {})[0]?.schema;
    if (schema === undefined && !this.#chance(0.05)) return undefined;
    headers["content-type"] = this.#chance(0.05) ? this.#pick(TYPES) : "application/json";
    const text = JSON.stringify(schema === undefined ? this.#pick(ODDITIES) : this.#value(schema)) ?? "";
    if (this.#chance(0.03)) return text.slice(0, Math.floor(text.length * this.#random()));
    if (this.#chance(0.01)) return text + "[".repeat(20_000);
    return text;
  }

  #value(schema: Schema): unknown {
    if (this.#chance(0.04)) return this.#pick(ODDITIES);
    if (schema.$ref !== undefined) {
      return this.#value(document.components.schemas[schema.$ref.split("/").at(-1) as string] ?? {});
    }
    if (schema.enum !== undefined) return this.#pick(schema.enum);
    switch (schema.type) {
      case "object":
        return this.#object(schema.properties ?? {});
      case "array":
        return Array.from({ length: Math.floor(this.#random() * 4) }, () => this.#value(schema.items ?? {}));
      case "integer":
        return this.#pick([...Object.values(this.#source.ids).flat(), 1, 2, 30, 60, 180]);
      case "boolean":
        return this.#chance(0.5);
      case undefined:
      default:
        return this.#pick([...(schema.examples ?? []), "12.50", "EUR", "a@b.example", "a long password", this.#text()]);
    }
  }

  #object(properties: Readonly<Record<string, Schema>>): Record<string, unknown> {
    const value: Record<string, unknown> = {};
    for (const [name, schema] of Object.entries(properties)) {
      if (this.#chance(0.85)) value[name] = this.#value(schema);
    }
    if (this.#chance(0.05)) value[this.#text()] = this.#pick(ODDITIES);
    return value;
  }

  #text(): string {
    const length = Math.floor(this.#random() * 20);
    return Array.from({ length }, () => String.fromCodePoint(0x20 + Math.floor(this.#random() * 0x5e))).join("");
  }

  #pick<T>(values: readonly T[]): T {
    return values[Math.floor(this.#random() * values.length)] as T;
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }

  /** The generator Mulberry32. */
  #random(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
}
