/** A cashier's live socket. Every message is checked against the schema and stored with its time of arrival. */

import { type Dispatcher, WebSocket } from "undici";
import type { z } from "zod";
import { liveMessageSchema, type liveStateSchema } from "../../gateway/api/cashier/live.ts";
import { HANGS } from "./hangs.ts";

export type LiveMessage = z.infer<typeof liveMessageSchema>;
export type LiveState = z.infer<typeof liveStateSchema>;

export interface TestLiveSocket {
  readonly messages: readonly { readonly atMs: number; readonly message: LiveMessage }[];
  /** When the service reported that the last state is still current. */
  readonly currents: readonly number[];
  /** The newest `state`. Throws when there is none. */
  state(): LiveState;
  /**
   * Resolves with the first message that fits, and its time of arrival. Checks the newest message so far and all later ones.
   * Rejects after `withinMs`.
   */
  until(fits: (message: LiveMessage) => boolean, withinMs?: number): Promise<{ atMs: number; message: LiveMessage }>;
  send(text: string): void;
  /** Resolves when the connection has ended, with the code and the reason. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string; readonly atMs: number }>;
  close(): Promise<void>;
}

/** Resolves once the socket is open. Rejects when the upgrade is refused. */
export async function openLive(
  baseUrl: string,
  stationId: number,
  headers: Readonly<Record<string, string>>,
  dispatcher?: Dispatcher,
): Promise<TestLiveSocket> {
  const url = `${baseUrl.replace(/^http/, "ws")}/api/cashier/v1/stations/${stationId}/live/`;
  const socket = new WebSocket(url, { headers, ...(dispatcher === undefined ? {} : { dispatcher }) });
  const messages: { atMs: number; message: LiveMessage }[] = [];
  const currents: number[] = [];
  const waiting = new Set<() => void>();
  const { promise: closed, resolve: onClosed } = Promise.withResolvers<{
    code: number;
    reason: string;
    atMs: number;
  }>();
  const { promise: opened, resolve, reject } = Promise.withResolvers<void>();
  socket.addEventListener("open", () => resolve());
  socket.addEventListener("error", () => reject(new Error("The live socket was refused.")));
  socket.addEventListener("close", ({ code, reason }) => onClosed({ code, reason, atMs: Date.now() }));
  socket.addEventListener("message", ({ data }) => {
    const message = liveMessageSchema.parse(JSON.parse(String(data)));
    if (message.type === "current") return void currents.push(Date.now());
    messages.push({ atMs: Date.now(), message });
    for (const wake of waiting) wake();
  });
  await opened;
  return {
    messages,
    currents,
    state() {
      const state = messages.map(({ message }) => message).findLast((message) => message.type === "state");
      if (state?.type !== "state") throw new Error("No state has come yet.");
      return state;
    },
    async until(fits, withinMs = HANGS.timeout) {
      let seen = Math.max(0, messages.length - 1);
      const check = () => {
        const found = messages.slice(seen).find(({ message }) => fits(message));
        seen = messages.length;
        return found;
      };
      const { promise, resolve: found, reject: late } = Promise.withResolvers<{ atMs: number; message: LiveMessage }>();
      const wake = (): void => {
        const one = check();
        if (one !== undefined) found(one);
      };
      const newest = JSON.stringify(messages.at(-1)?.message);
      const timer = setTimeout(
        () => late(new Error(`No such message in ${withinMs} ms; the newest at first: ${newest}`)),
        withinMs,
      );
      waiting.add(wake);
      wake();
      try {
        return await promise;
      } finally {
        clearTimeout(timer);
        waiting.delete(wake);
      }
    },
    send: (text) => socket.send(text),
    closed,
    async close() {
      socket.close();
      await closed;
    },
  };
}

export const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
