import { describe, expect, it } from "vitest";
import { hostAndPort, parseNatsAddress } from "../../services/bus/nats-server.ts";

describe("parseNatsAddress", () => {
  it("one server with a token: its host, port and token", () => {
    expect(parseNatsAddress("nats://to%2Fken@one.example:4333")).toEqual({
      servers: [{ host: "one.example", port: 4333 }],
      credentials: { token: "to/ken" },
      isTls: false,
    });
  });

  it("several servers over TLS: each host, with the credentials of the first address", () => {
    expect(parseNatsAddress("tls://ann:secret@one.example, tls://two.example:4333")).toEqual({
      servers: [
        { host: "one.example", port: 4222 },
        { host: "two.example", port: 4333 },
      ],
      credentials: { user: "ann", pass: "secret" },
      isTls: true,
    });
  });

  it("the same server twice: it is in the list once", () => {
    const { servers = [] } =
      parseNatsAddress("nats://token@one.example:4222,nats://one.example,nats://two.example") ?? {};
    expect(servers.map(({ host }) => host)).toEqual(["one.example", "two.example"]);
  });

  it("an IPv6 address: hostAndPort writes it with brackets, the parsed host has none", () => {
    const server = parseNatsAddress("nats://[::1]:4222")?.servers[0];
    expect(server).toEqual({ host: "::1", port: 4222 });
    expect(server && hostAndPort(server)).toBe("[::1]:4222");
  });
});
