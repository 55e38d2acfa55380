/** Every answer of the HTTP tests is compared with the OpenAPI document: status, required headers, body. */
import { readFileSync } from "node:fs";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect } from "vitest";
import { OPENAPI_FILE } from "../../gateway/api/meta/pages.ts";

interface Response {
  readonly $ref?: string;
  readonly headers?: Readonly<Record<string, { readonly required?: boolean }>>;
  readonly content?: Readonly<Record<string, unknown>>;
  /** The codes that an error answer of the operation may have. */
  readonly "x-error-codes"?: readonly string[];
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: Record<string, Response> }>>>>;
  readonly components: { readonly responses: Readonly<Record<string, Response>> };
}

export interface CheckedAnswer {
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

const document = JSON.parse(readFileSync(OPENAPI_FILE, "utf8")) as Document;
// A worker compiles hundreds of schemas and uses each a few times. To optimize their code would take longer than it saves.
const ajv = new Ajv2020({ strict: false, allErrors: true, code: { optimize: false } });
addFormats.default(ajv);
ajv.addFormat("decimal", true);
ajv.addSchema(document, "openapi");

const templates = Object.keys(document.paths).map((path) => ({
  path,
  pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+").replaceAll(".", String.raw`\.`)}$`),
}));
const validators = new Map<string, ValidateFunction>();

let hasOlderGateways = false;
/** From now on no answer is compared: an older gateway answers as its own document says. */
export function expectOlderGateways(): void {
  hasOlderGateways = true;
}

/** Fails the test when the document does not allow this answer. */
export function checkAnswer(answer: CheckedAnswer): void {
  if (hasOlderGateways) return;
  const { method, status } = answer;
  const path = answer.path.split("?")[0] as string;
  const title = `${method} ${path} → ${status}`;
  if (isAnswerOfTheParser(answer)) return;
  const template = templates.find(({ pattern }) => pattern.test(path))?.path;
  const operation = template === undefined ? undefined : document.paths[template]?.[operationKey(method)];
  if (operation === undefined || isAnswerOfThePath(answer)) return checkOutside(answer, title);
  const documented = operation.responses[String(status)];
  expect(documented, `${title} is not in the document: ${answer.text}`).toBeDefined();
  const pointer = `/paths/${escapePointer(template as string)}/${operationKey(method)}/responses/${status}`;
  const [response, at] = resolve(documented as Response, pointer);
  for (const [name, header] of Object.entries(response.headers ?? {})) {
    if (header.required === true) expect(answer.headers.has(name), `${title} lacks ${name}`).toBe(true);
  }
  checkBody(answer, response, at, title);
}

/** The HTTP server refuses bytes that are no HTTP, or a header block over 4 KiB, before it knows any path. */
function isAnswerOfTheParser(answer: CheckedAnswer): boolean {
  return (answer.status === 400 || answer.status === 431) && answer.text.startsWith("<h1>");
}

/** The operation of a GET also answers HEAD. */
const operationKey = (method: string): string => (method === "HEAD" ? "get" : method.toLowerCase());

/** Answers to OPTIONS and answers with 405 belong to the path and not to one operation. */
function isAnswerOfThePath(answer: CheckedAnswer): boolean {
  return answer.method === "OPTIONS" || answer.status === 405;
}

function checkOutside(answer: CheckedAnswer, title: string): void {
  if (answer.status >= 400) {
    if (answer.method !== "HEAD") validate("/components/schemas/ApiError", JSON.parse(answer.text), title);
    expect(answer.headers.get("x-request-id"), title).toBeTruthy();
  }
  if (answer.status === 405) expect(answer.headers.get("allow"), title).toBeTruthy();
}

function resolve(response: Response, pointer: string): [Response, string] {
  if (response.$ref === undefined) return [response, pointer];
  const name = response.$ref.slice(response.$ref.lastIndexOf("/") + 1);
  return [document.components.responses[name] as Response, `/components/responses/${name}`];
}

function checkBody(answer: CheckedAnswer, response: Response, pointer: string, title: string): void {
  const type = answer.headers.get("content-type");
  if (response.content === undefined) {
    expect([answer.text, type], `${title} has a body`).toEqual(["", null]);
    return;
  }
  expect(Object.keys(response.content), `${title} is of another type`).toContain(type);
  if (answer.method === "HEAD") expect(answer.text, title).toBe("");
  else {
    const isText = type?.startsWith("text/") === true;
    const body = (isText ? answer.text : JSON.parse(answer.text)) as { readonly code?: string };
    validate(`${pointer}/content/${escapePointer(String(type))}/schema`, body, title);
    const codes = response["x-error-codes"];
    if (codes !== undefined) expect(codes, `${title} may not have this code`).toContain(body.code);
  }
}

function validate(pointer: string, body: unknown, title: string): void {
  const known = validators.get(pointer);
  const check = known ?? ajv.compile({ $ref: `openapi#${encodeURI(pointer)}` });
  validators.set(pointer, check);
  const isValid = check(body);
  expect(isValid ? [] : check.errors, `${title} does not fit the document: ${JSON.stringify(body)}`).toEqual([]);
}

function escapePointer(token: string): string {
  return token.replaceAll("~", "~0").replaceAll("/", "~1");
}
