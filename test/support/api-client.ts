/** A client of one API, with one token and one path prefix. `http.ts` compares each answer with the OpenAPI document. */
import { expect } from "vitest";
import { type Answer, type Refused, send } from "./http.ts";

export interface Request {
  /** Becomes JSON. */
  readonly body?: unknown;
  /** Sent as it is, as a file, in place of `body`. */
  readonly file?: string;
  /** Sent as `Idempotency-Key`. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

export interface ApiClient {
  /** The same client at another gateway, such as `http://127.0.0.1:8481`. */
  at(origin: string): ApiClient;
  /** Sends a request and returns its answer, whatever the status. */
  call<T = Record<string, unknown>>(method: string, path: string, request?: Request): Promise<Answer<T>>;
  /** Returns the body of the answer to a request that is expected to succeed. */
  good<T = Record<string, unknown>>(method: string, path: string, request?: Request): Promise<T>;
  /** Returns the answer to a request that is expected to be refused with this code. */
  refused(code: string, method: string, path: string, request?: Request): Promise<Answer<Refused>>;
}

/** `root` is the part before the given paths, for example `http://127.0.0.1:8480/api/cashier/v1/`. */
export function apiClient(root: string, token: string): ApiClient {
  const { origin, pathname } = new URL(root);
  const call = <T>(method: string, path: string, request: Request = {}): Promise<Answer<T>> => {
    const { body, file, key, headers, timeoutMs } = request;
    return send<T>(origin, method, pathname + path, {
      token,
      ...(timeoutMs === undefined ? {} : { timeoutMs }),
      ...(body === undefined ? {} : { json: body }),
      ...(file === undefined ? {} : { body: file }),
      headers: {
        ...(file === undefined ? {} : { "content-type": "application/octet-stream" }),
        ...(key === undefined ? {} : { "idempotency-key": key }),
        ...headers,
      },
    });
  };
  return {
    at: (other) => apiClient(other + pathname, token),
    call,
    async good<T>(method: string, path: string, request?: Request): Promise<T> {
      const answer = await call<T>(method, path, request);
      expect(answer.status, `${method} ${path} answered ${answer.text}`).toBeLessThan(300);
      return answer.body;
    },
    async refused(code, method, path, request) {
      const answer = await call<Refused>(method, path, request);
      expect(answer.body, `${method} ${path}`).toMatchObject({ code });
      return answer;
    },
  };
}
