/** An operator with a system account and an account with streams, by JWT, in the form that the tool nsc writes. */
import { nkeys } from "nats";

type KeyPair = nkeys.KeyPair;

/** A JWT that an nkey signed. */
function claim(issuer: KeyPair, subject: KeyPair, nats: object): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const body = { jti: "1", iat: 1, iss: issuer.getPublicKey(), sub: subject.getPublicKey(), name: "test", nats };
  const signed = `${part({ typ: "JWT", alg: "ed25519-nkey" })}.${part(body)}`;
  return `${signed}.${Buffer.from(issuer.sign(Buffer.from(signed))).toString("base64url")}`;
}

export interface JwtAccounts {
  readonly account: KeyPair;
  /** The lines that the configuration of a server needs. */
  readonly configuration: readonly string[];
  /** The text of a `.creds` file for the user, by this account's key. */
  readonly credentials: (issuer: KeyPair) => string;
}

/** With `namesSystemAccount` the operator's JWT names the system account, as with `nsc add operator --sys`. */
export function jwtAccounts({ namesSystemAccount = false } = {}): JwtAccounts {
  const operator = nkeys.createOperator();
  const [system, account, user] = [nkeys.createAccount(), nkeys.createAccount(), nkeys.createUser()];
  const unlimited = { subs: -1, conn: -1, leaf: -1, imports: -1, exports: -1, data: -1, payload: -1, wildcards: true };
  const streams = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  // nats-server allows no streams in the system account.
  const accounts = [
    [system, unlimited],
    [account, { ...unlimited, ...streams }],
  ] as const;
  const preloaded = accounts.map(
    ([each, limits]) => `${each.getPublicKey()}: ${claim(operator, each, { type: "account", version: 2, limits })}`,
  );
  const named = namesSystemAccount ? { system_account: system.getPublicKey() } : {};
  return {
    account,
    configuration: [
      `operator: ${claim(operator, operator, { type: "operator", version: 2, ...named })}`,
      `system_account: ${system.getPublicKey()}`,
      "resolver: MEMORY",
      `resolver_preload: { ${preloaded.join("\n")} }`,
    ],
    credentials: (issuer) => {
      const jwt = claim(issuer, user, { type: "user", version: 2, subs: -1, data: -1, payload: -1 });
      const seed = new TextDecoder().decode(user.getSeed());
      return `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n${seed}\n------END USER NKEY SEED------\n`;
    },
  };
}
