/** An answer of 304 does not show whether the device reads it. So the server ends a connection after many in a row. */
import { App, us_listen_socket_close, us_socket_local_port } from "uWebSockets.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AnswerWriter, UnsentAnswers } from "../../../gateway/http/answer-writer.ts";
import { RequestHead } from "../../../gateway/http/request-head.ts";
import type { PollRoute } from "../../../gateway/http/route.ts";
import { CONNECTION_LIMITS } from "../../../gateway/limits.ts";
import { Poll, PollCounts, type PollDeps } from "../../../gateway/read-model/polls.ts";
import type { Rendered } from "../../../gateway/read-model/rendered.ts";
import { routes } from "../../../gateway/routes.ts";
import { sendRaw } from "../raw-request.ts";

const ETAG = 'W/"the-view"';
const view = {
  head: '{"server_time":"',
  etag: ETAG,
  freshHeaders: `application/json\r\nETag: ${ETAG}`,
  unchangedHeaders: ETAG,
  blocked: "",
  presents: null,
  unchangedInARow: 0,
} as Rendered;

let port = 0;
let stop = (): void => undefined;
beforeAll(() => {
  const row = routes.find((route) => route.poll === "display") as PollRoute;
  const table = { deviceId: () => 1, stationId: () => 1 };
  const deps = {
    gate: { pass: () => 0, table },
    views: { view: () => view },
    nowMs: Date.now,
    counts: new PollCounts(),
    writer: new AnswerWriter(new UnsentAnswers()),
    isCrowded: () => false,
    isDraining: () => false,
  };
  const poll = new Poll(deps as unknown as PollDeps, { ...row, operationId: row.operation });
  const head = new RequestHead();
  const app = App().get("/", (res, req) => {
    head.read(req);
    poll.answer(res, head, false);
  });
  app.listen("127.0.0.1", 0, (socket) => {
    if (socket === false) return;
    port = us_socket_local_port(socket);
    stop = () => {
      us_listen_socket_close(socket);
      app.close();
    };
  });
});
afterAll(() => stop());

const poll = (etag: string): string => `GET / HTTP/1.1\r\nHost: x\r\nIf-None-Match: ${etag}\r\n\r\n`;
/** Sends these polls on one connection. Returns how many answers had each status, and whether the connection ended. */
async function pollAll(requests: readonly string[]) {
  const answer = await sendRaw(port, [requests.join("")], { waitMs: 2_000, endAfter: false });
  const text = `${answer.head}\r\n\r\n${answer.body}`;
  return {
    unchanged: text.split(" 304 Not Modified").length - 1,
    fresh: text.split(" 200 OK").length - 1,
    ends: text.split("Connection: close").length - 1,
    isClosed: answer.isClosed,
  };
}

describe("a device's polls", () => {
  it("1,024 answers of 304 in a row: the last one ends the connection, and later polls are not answered", async () => {
    const { unchangedInARow } = CONNECTION_LIMITS;
    const few = await pollAll([...Array<string>(unchangedInARow - 1).fill(poll(ETAG)), poll("other")]);
    // One answer with a body shows that the device reads, so the server counts from zero again.
    expect(few).toMatchObject({ unchanged: unchangedInARow - 1, fresh: 1, ends: 0 });
    const many = await pollAll(Array<string>(unchangedInARow).fill(poll(ETAG)));
    expect(many).toMatchObject({ unchanged: unchangedInARow, ends: 1, isClosed: true });
    const more = await pollAll(Array<string>(unchangedInARow + 10).fill(poll(ETAG)));
    expect([more.isClosed, more.unchanged <= unchangedInARow]).toEqual([true, true]);
  });
});
