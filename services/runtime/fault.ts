/**
 * Explains the error codes of the operating system, of TLS and of PostgreSQL. A person who starts this program reads a
 * sentence with the next step. The code is in brackets, for a search.
 */

interface Explanation {
  /** What is wrong, as a clause. */
  readonly because: string;
  /** What a person can do about it. */
  readonly next: string;
}

/** An explained fault, with its code. */
interface Fault extends Explanation {
  readonly code: string;
  /** The file, the address or the host that the error names. */
  readonly place: string | undefined;
}

const SILENT: Explanation = {
  because: "the server does not answer",
  next: "check the address, the network and whether the server hangs",
};
const HANGS_UP: Explanation = {
  because: "the server accepts connections and closes them",
  next: "check that the address leads to the right kind of server, and read its log",
};
const NO_ROUTE: Explanation = {
  because: "this machine has no way to that address",
  next: "correct it, or check the network",
};
const FORBIDDEN: Explanation = {
  because: "this user has no permission",
  next: "give the permission to this user, or start as another one",
};
const TOO_MANY_FILES: Explanation = {
  because: "too many files and connections are open",
  next: "raise the limit of open files (`ulimit -n`)",
};
const UNTRUSTED: Explanation = {
  because: "no authority that this machine trusts has signed the server's certificate",
  next: "name the authority's certificate in NODE_EXTRA_CA_CERTS",
};
const NO_TLS: Explanation = {
  because: "the server does not speak TLS there",
  next: "switch TLS on at the server, or leave it out of the address",
};

const REFUSED_CERTIFICATE: Explanation = {
  because: "the server does not trust the certificate of this process",
  next: "name one that its authority has signed in NATS_CERT_FILE, with its key in NATS_KEY_FILE",
};

export const FAULTS: Readonly<Record<string, Explanation>> = {
  // Connections
  ECONNREFUSED: { because: "nothing listens at that address", next: "start the server, or correct host and port" },
  ECONNRESET: HANGS_UP,
  EPIPE: HANGS_UP,
  CONNECTION_CLOSED: HANGS_UP,
  ETIMEDOUT: SILENT,
  CONNECT_TIMEOUT: SILENT,
  database_deadline: SILENT,
  EHOSTUNREACH: NO_ROUTE,
  EHOSTDOWN: NO_ROUTE,
  ENETUNREACH: NO_ROUTE,
  ENETDOWN: NO_ROUTE,
  ENOTFOUND: { because: "no host has that name", next: "correct the name" },
  EAI_AGAIN: {
    because: "the name server does not answer",
    next: "try again, and check which name servers this machine asks",
  },
  EADDRINUSE: {
    because: "another program listens at that address",
    next: "stop that program, or choose another port",
  },
  EADDRNOTAVAIL: {
    because: "this machine does not have that address",
    next: "choose one of its own, for example 127.0.0.1",
  },
  nats_no_greeting: {
    because: "the server there does not answer as a NATS server does",
    next: "correct host and port, or read its log",
  },
  bus_down: {
    because: "the connection to NATS is down",
    next: "check the NATS servers, and start a process again that has ended",
  },
  // Files and the machine
  EACCES: FORBIDDEN,
  EPERM: FORBIDDEN,
  ENOENT: { because: "there is no such file or folder", next: "correct the path" },
  ENOTDIR: { because: "a part of the path is a file and no folder", next: "correct the path" },
  EISDIR: { because: "the path leads to a folder and not to a file", next: "correct the path" },
  ENAMETOOLONG: { because: "the path is too long", next: "choose a shorter one" },
  EROFS: { because: "the file system can only be read", next: "choose another folder" },
  ENOSPC: { because: "the disk is full", next: "make room on it" },
  EDQUOT: { because: "this user's share of the disk is used up", next: "make room, or raise the quota" },
  EIO: { because: "the disk reports an error", next: "check the disk" },
  ENOMEM: { because: "the machine has no memory left", next: "end other programs, or add memory" },
  EMFILE: TOO_MANY_FILES,
  ENFILE: TOO_MANY_FILES,
  ENOEXEC: { because: "the program is made for another kind of machine", next: "install the one for this machine" },
  // Certificates
  CERT_HAS_EXPIRED: {
    because: "the server's certificate has expired",
    next: "renew it, or correct this machine's clock",
  },
  CERT_NOT_YET_VALID: {
    because: "the server's certificate is not valid yet",
    next: "correct this machine's clock, or the certificate",
  },
  DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
  SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT: UNTRUSTED,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
  ERR_TLS_CERT_ALTNAME_INVALID: {
    because: "the server's certificate is for another name",
    next: "use the name of the certificate in the address",
  },
  ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED: {
    because: "the server demands a certificate of this process",
    next: "name it in NATS_CERT_FILE, and its key in NATS_KEY_FILE",
  },
  ERR_SSL_TLSV1_ALERT_UNKNOWN_CA: REFUSED_CERTIFICATE,
  "ERR_SSL_SSL/TLS_ALERT_BAD_CERTIFICATE": REFUSED_CERTIFICATE,
  nats_tls_ended: {
    because: "the server ends the connection after TLS, probably because it refuses the certificate of this process",
    next: "read its log, and name a certificate that its authority has signed in NATS_CERT_FILE",
  },
  "ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED": {
    because: "the certificate of this process has expired",
    next: "renew the file that NATS_CERT_FILE names, or correct the server's clock",
  },
  EPROTO: NO_TLS,
  ERR_SSL_WRONG_VERSION_NUMBER: NO_TLS,
  ERR_SSL_PACKET_LENGTH_TOO_LONG: NO_TLS,
  // PostgreSQL
  "08P01": HANGS_UP,
  "25006": { because: "the database can only be read", next: "name the primary server and not its copy" },
  "28000": {
    because: "the server does not let this user in from here",
    next: "correct the user in the address, or allow it in the server's pg_hba.conf",
  },
  "28P01": { because: "the server refuses the user or the password", next: "correct them in the address" },
  "3D000": {
    because: "the server has no database of that name",
    next: "create it, or correct the name in the address",
  },
  "42501": { because: "the database user may not do that", next: "make it the owner of the database" },
  "42P01": {
    because: "the database has no tables of this program, or of another version of it",
    next: "let `npm start` of this version prepare it first",
  },
  "53100": { because: "the disk of the database server is full", next: "make room on it" },
  "53200": { because: "the database server has no memory left", next: "give it more, or lower its settings" },
  "53300": {
    because: "all connections of the database server are taken",
    next: "raise its max_connections, or end other programs",
  },
  "57P01": { because: "the database server has ended the connection", next: "try again when it is up" },
  "57P02": { because: "the database server has ended the connection after a crash", next: "read its log" },
  "57P03": { because: "the database server is just starting or stopping", next: "try again in a moment" },
  "58030": { because: "the database server cannot read or write its files", next: "read its log, and check its disk" },
  AUTH_TYPE_NOT_IMPLEMENTED: {
    because: "the database server wants a kind of log-in that this program does not have",
    next: "allow scram-sha-256 in the server's pg_hba.conf",
  },
  SASL_SIGNATURE_MISMATCH: {
    because: "the database server could not prove that it knows the password",
    next: "check that the address leads to the right server",
  },
};

/** How deep `faultOf` searches below an error for a code in `FAULTS`. */
const DEEPEST = 5;

/**
 * The explanation of an error, or of the first explained error below it: its cause, or the errors of an
 * `AggregateError`.
 */
export function faultOf(error: unknown, depth = 0): Fault | undefined {
  if (!(error instanceof Error) || depth > DEEPEST) return undefined;
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  const explanation = code === undefined ? undefined : FAULTS[code];
  if (code !== undefined && explanation !== undefined) return { ...explanation, code, place: placeOf(error) };
  const below = [error.cause, ...(error instanceof AggregateError ? error.errors : [])];
  for (const inner of below) {
    const fault = faultOf(inner, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** "<subject> cannot be used: <what is wrong> (<code>); <next step>." The subject names the setting that it comes from. */
export function cannotBeUsed(subject: string, error: unknown): string {
  const next = faultOf(error)?.next;
  return `${subject} cannot be used: ${reasonOf(error)}${next === undefined ? "" : `; ${next}`}.`;
}

/**
 * "<who> cannot go on: <what is wrong> (<code>, <place>); <next step>."; undefined for an error without an explanation.
 */
export function cannotGoOn(who: string, error: unknown): string | undefined {
  const fault = faultOf(error);
  if (fault === undefined) return undefined;
  const place = fault.place === undefined ? "" : `, ${fault.place}`;
  return `${who} cannot go on: ${fault.because} (${fault.code}${place}); ${fault.next}.`;
}

/** What is wrong, with the code in brackets, for a sentence with another next step. */
export function reasonOf(error: unknown): string {
  const fault = faultOf(error);
  return fault === undefined ? otherReason(error) : `${fault.because} (${fault.code})`;
}

/** PostgreSQL's messages are for people, so the sentence has the message. For any other error it has the code. */
function otherReason(error: unknown): string {
  if (!(error instanceof Error)) return "the error has no name";
  const code = "code" in error && typeof error.code === "string" ? error.code : error.name;
  if (!("severity" in error)) return `the error is ${code}`;
  return `PostgreSQL answers "${error.message.replaceAll("\n", " ").replace(/\.$/, "")}" (${code})`;
}

/** The facts that Node adds to its errors. */
interface NodeFacts {
  readonly path?: unknown;
  readonly address?: unknown;
  readonly port?: unknown;
  readonly hostname?: unknown;
}

/** What the error is about, where Node has added it: a path, an address or a host. */
function placeOf(error: Error): string | undefined {
  const { path, address, port, hostname }: Error & NodeFacts = error;
  if (typeof path === "string") return path;
  if (typeof address === "string") return typeof port === "number" ? `${address}:${port}` : address;
  return typeof hostname === "string" ? hostname : undefined;
}
