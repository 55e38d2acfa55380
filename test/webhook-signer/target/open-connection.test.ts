/** The second check of an address: the one that the socket has reached. */
import { createSecureContext } from "node:tls";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { openConnection } from "../../../services/webhook-signer/http/open-connection.ts";
import { isPublicAddress } from "../../../services/webhook-signer/target/address-rule.ts";
import { removeFolder, startTarget } from "./raw-target.ts";

afterAll(removeFolder);

const settings = { secureContext: createSecureContext(), connectMs: 1_000 };

test.each([true, false])("a private address that passed the first check gets no byte (TLS: %s)", async (isSecure) => {
  const inside = await startTarget(() => undefined);
  onTestFinished(() => inside.close());
  const times = { address: null, connectMs: null, tlsMs: null };
  const target = { host: "hooks.example.com", port: inside.port, isSecure, addresses: ["127.0.0.1"] };
  const allows = (_host: string, address: string): boolean => isPublicAddress(address);
  const opening = openConnection(target, { ...settings, allows }, times, new AbortController().signal);
  await expect(opening).rejects.toMatchObject({ error: "target_refused" });
  expect(times).toEqual({ address: null, connectMs: null, tlsMs: null });
  await expect.poll(() => inside.sockets.every((socket) => socket.destroyed)).toBe(true);
  expect(inside.received.join("")).toBe("");
});
