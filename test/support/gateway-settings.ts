/** A gateway on a free port, without TLS, proxies and a platform key. */
export const GATEWAY_SETTINGS = {
  host: "127.0.0.1",
  port: 0,
  sharedPort: false,
  maxConnections: undefined,
  maxConnectionsPerAddress: undefined,
  trustedProxies: [],
  platformKey: undefined,
  tls: undefined,
};
