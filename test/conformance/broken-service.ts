/** A way to break the service, and the parts of such ways. The proxy applies them to the answers that it forwards. */

export interface Passing {
  readonly method: string;
  /** Below the origin, without the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
  readonly requestText: string;
}

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** JSON, or undefined where the answer has no body. */
  body: Record<string, unknown> | undefined;
}

export interface BrokenService {
  readonly name: string;
  readonly caughtBy: string;
  /** Changes the answer in place; `memory` lasts for one run. */
  readonly breaks: (passing: Passing, answer: Answer, memory: Map<string, unknown>) => void;
}

const DEVICES = "/api/payments/v1/devices/";
export const isAt = (passing: Passing, method: string, path: string): boolean =>
  passing.method === method && passing.path === DEVICES + path;
export const isGood = ({ status }: Answer): boolean => status === 200 || status === 201;
export const inner = (answer: Answer, name: string): Record<string, unknown> | undefined =>
  (answer.body?.[name] ?? undefined) as Record<string, unknown> | undefined;
export const requestOf = ({ requestText }: Passing): Record<string, unknown> => {
  try {
    return JSON.parse(requestText) as Record<string, unknown>;
  } catch {
    return {};
  }
};
/** At a path of the cashier's API. */
export const isCashier = ({ method, path }: Passing, wanted: string, pattern: RegExp): boolean =>
  method === wanted && path.startsWith("/api/cashier/v1/") && pattern.test(path);
const isIntentRead = (passing: Passing): boolean => isCashier(passing, "GET", /\/intents\/\d+\/$/);
const isOrderRead = (passing: Passing): boolean => isCashier(passing, "GET", /\/orders\/\d+\/$/);
export const refuse = (answer: Answer, status: number, code: string): void => {
  answer.status = status;
  answer.body = { code, detail: "Broken on purpose.", request_id: "broken" };
};
export const accept = (answer: Answer, body: Record<string, unknown>): void => {
  answer.status = 200;
  answer.body = body;
};

export type Breaks = BrokenService["breaks"];
export const atDevice =
  (
    method: string,
    path: string,
    change: (answer: Answer, passing: Passing, memory: Map<string, unknown>) => void,
  ): Breaks =>
  (passing, answer, memory) => {
    if (isAt(passing, method, path)) change(answer, passing, memory);
  };
export const goodAt = (
  method: string,
  path: string,
  change: (body: Record<string, unknown>, passing: Passing) => void,
): Breaks =>
  atDevice(method, path, (answer, passing) => {
    if (isGood(answer) && answer.body !== undefined) change(answer.body, passing);
  });
export const intentReads =
  (change: (intent: Record<string, unknown>, memory: Map<string, unknown>) => void): Breaks =>
  (passing, answer, memory) => {
    if (isIntentRead(passing) && isGood(answer) && answer.body !== undefined) change(answer.body, memory);
  };
export const orderReads =
  (change: (order: Record<string, unknown>) => void): Breaks =>
  (passing, answer) => {
    if (isOrderRead(passing) && isGood(answer) && answer.body !== undefined) change(answer.body);
  };
export const statusOf = (from: string, to: string): Breaks =>
  intentReads((intent) => {
    if (intent["status"] === from) intent["status"] = to;
  });
export const reportRefusal = (change: (answer: Answer) => void): Breaks =>
  atDevice("POST", "assignment/report/", (answer) => {
    if (answer.status === 409) change(answer);
  });

export const broken = (name: string, caughtBy: string, breaks: Breaks): BrokenService => ({ name, caughtBy, breaks });
