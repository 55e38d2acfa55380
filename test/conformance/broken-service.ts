/** What a broken service is, and the parts of such services. The proxy applies them to the answers that it forwards. */
import { DEVICE_ROOT } from "../../clients/conformance/http.ts";

type Fields = Record<string, unknown>;

export interface Passing {
  readonly method: string;
  /** The path without origin and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly requestText: string;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** The JSON of the body; undefined when the answer has no body. */
  body: Fields | undefined;
}

export interface BrokenService {
  readonly name: string;
  readonly caughtBy: string;
  /** Changes the answer in place; `memory` lasts for one run. */
  readonly breaks: (passing: Passing, answer: Answer, memory: Map<string, unknown>) => void;
}

const REPORT = "assignment/report/";
export const isAt = (passing: Passing, method: string, path: string): boolean =>
  passing.method === method && passing.path === DEVICE_ROOT + path;
export const isReport = (passing: Passing): boolean => isAt(passing, "POST", REPORT);
/** Whether the request is for a path of the cashier's API. */
export const isCashier = ({ method, path }: Passing, wanted: string, pattern: RegExp): boolean =>
  method === wanted && path.startsWith("/api/cashier/v1/") && pattern.test(path);
export const hasCredential = ({ headers }: Passing): boolean => headers["authorization"] !== undefined;
export const asksForChanges = ({ headers }: Passing): boolean => headers["if-none-match"] !== undefined;
export const requestOf = ({ requestText }: Passing): Fields => {
  try {
    return JSON.parse(requestText) as Fields;
  } catch {
    return {};
  }
};

export const isGood = ({ status }: Answer): boolean => status === 200 || status === 201;
/** Whether the service refuses with this status or code, or, without `by`, with any error. */
const isRefused = (answer: Answer, by?: number | string): boolean => {
  if (by === undefined) return !isGood(answer);
  return typeof by === "number" ? answer.status === by : answer.body?.["code"] === by;
};
export const inner = (answer: Answer, name: string): Fields | undefined =>
  (answer.body?.[name] ?? undefined) as Fields | undefined;
export const refuse = (answer: Answer, status: number, code: string): void => {
  answer.status = status;
  answer.body = { code, detail: "Broken on purpose.", request_id: "broken" };
};
export const accept = (answer: Answer, body: Fields): void => {
  answer.status = 200;
  answer.body = body;
};
export const callUnchanged = (answer: Answer): void => {
  answer.status = 304;
  answer.body = undefined;
};

export type Breaks = BrokenService["breaks"];
type Change = (answer: Answer, passing: Passing, memory: Map<string, unknown>) => void;
type When = (passing: Passing) => boolean;

const where =
  (isWhere: When, change: Change): Breaks =>
  (passing, answer, memory) => {
    if (isWhere(passing)) change(answer, passing, memory);
  };
export const atDevice = (method: string, path: string, change: Change): Breaks =>
  where((passing) => isAt(passing, method, path), change);
export const atReport = (change: Change): Breaks => where(isReport, change);
export const atCashier = (method: string, pattern: RegExp, change: Change): Breaks =>
  where((passing) => isCashier(passing, method, pattern), change);

/** Accepts a request that the service refuses with this status or code. */
export const acceptsAt = (
  method: string,
  path: string,
  refusal: number | string,
  body: Fields = {},
  when: When = () => true,
): Breaks =>
  atDevice(method, path, (answer, passing) => {
    if (isRefused(answer, refusal) && when(passing)) accept(answer, { ...body });
  });
export const acceptsReport = (refusal: number | string, when?: When): Breaks =>
  acceptsAt("POST", REPORT, refusal, {}, when);
/** Accepts a cashier's request that the service refuses: with this status or code, or, without one, with any error. */
export const acceptsAtTill = (method: string, pattern: RegExp, refusal?: number | string, body: Fields = {}): Breaks =>
  atCashier(method, pattern, (answer) => {
    if (isRefused(answer, refusal)) accept(answer, { ...body });
  });
/** Creates a collection that the service refuses with this status or code. */
export const createsIntent = (refusal: number | string): Breaks =>
  atCashier("POST", /\/intents\/$/, (answer) => {
    if (!isRefused(answer, refusal)) return;
    accept(answer, { intent_id: 1, intent_display_number: 1 });
    answer.status = 201;
  });
export const refusesAtTill = (method: string, pattern: RegExp, status: number, code: string): Breaks =>
  atCashier(method, pattern, (answer) => refuse(answer, status, code));

export const goodAt = (method: string, path: string, change: (body: Fields, passing: Passing) => void): Breaks =>
  atDevice(method, path, (answer, passing) => {
    if (isGood(answer) && answer.body !== undefined) change(answer.body, passing);
  });
export const inAssignment = (change: (assignment: Fields) => void): Breaks =>
  goodAt("GET", "assignment/", ({ assignment }) => {
    if (assignment !== null) change(assignment as Fields);
  });
export const inReport = (change: (report: Fields, passing: Passing) => void): Breaks =>
  goodAt("POST", REPORT, ({ report }, passing) => change(report as Fields, passing));
/** Changes the assignment in the answer to a report. */
export const inReportedAssignment = (change: (assignment: Fields) => void): Breaks =>
  atReport((answer) => {
    const assignment = inner(answer, "assignment");
    if (assignment !== undefined) change(assignment);
  });
const inRead = (pattern: RegExp, change: (body: Fields) => void): Breaks =>
  atCashier("GET", pattern, (answer) => {
    if (isGood(answer) && answer.body !== undefined) change(answer.body);
  });
export const INTENT = /\/intents\/\d+\/$/;
export const inIntent = (change: (intent: Fields) => void): Breaks => inRead(INTENT, change);
export const inReportsOfIntent = (change: (report: Fields) => void): Breaks =>
  inIntent(({ reports }) => {
    for (const report of (reports ?? []) as Fields[]) change(report);
  });
export const inOrder = (change: (order: Fields) => void): Breaks => inRead(/\/orders\/\d+\/$/, change);
/** Changes the transaction of an order, of one payment route or of any. */
export const inTransaction = (change: (transaction: Fields) => void, route?: string): Breaks =>
  inOrder((order) => {
    const transaction = order["transaction"] as Fields | null;
    if (transaction !== null && (route === undefined || transaction["route"] === route)) change(transaction);
  });
/** Changes each payment route, whether the service offers it to the cashier or not. */
export const inRoutes = (change: (route: Fields, routes: readonly Fields[]) => void): Breaks =>
  inRead(/\/routes\/$/, ({ routes }) => {
    for (const each of routes as Fields[]) change(each, routes as Fields[]);
  });
export const statusOf = (from: string, to: string): Breaks =>
  inIntent((intent) => {
    if (intent["status"] === from) intent["status"] = to;
  });

export const broken = (name: string, caughtBy: string, breaks: Breaks): BrokenService => ({ name, caughtBy, breaks });
