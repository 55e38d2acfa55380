/**
 * A certificate authority for tests: no test needs openssl, and no certificate in the repository expires. It writes the
 * parts of X.509 in DER (RFC 5280) that TLS requires. Keys are P-256.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIPv4 } from "node:net";

export interface Certificate {
  /** Both in PEM, as `tls.createServer` takes them. */
  readonly cert: string;
  readonly key: string;
}

export interface CertificateRequest {
  /** DNS names and IPv4 addresses. */
  readonly names: readonly string[];
  /** By default from an hour ago until tomorrow. */
  readonly notBefore?: Date;
  readonly notAfter?: Date;
}

export interface Authority extends Certificate {
  issue(request: CertificateRequest): Certificate;
}

const HOUR_MS = 3_600_000;

export function createAuthority(commonName = "Test authority"): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const issuer = { commonName, privateKey };
  const cert = certificate({ subject: commonName, publicKey, issuer, isAuthority: true, names: [] });
  return {
    cert,
    key: pemOf(privateKey),
    issue: (request) => issueCertificate(request, issuer),
  };
}

/** Signed by its own key, which no client trusts. */
export function selfSigned(request: CertificateRequest): Certificate {
  return issueCertificate(request, undefined);
}

interface Issuer {
  readonly commonName: string;
  readonly privateKey: KeyObject;
}

function issueCertificate(request: CertificateRequest, issuer: Issuer | undefined): Certificate {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const subject = request.names[0] ?? "unknown";
  const signer = issuer ?? { commonName: subject, privateKey };
  return {
    cert: certificate({ ...request, subject, publicKey, issuer: signer, isAuthority: false }),
    key: pemOf(privateKey),
  };
}

const pemOf = (key: KeyObject): string => key.export({ type: "pkcs8", format: "pem" }).toString();

function der(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const SEQUENCE = 0x30;
const sequence = (...parts: readonly Uint8Array[]): Buffer => der(SEQUENCE, ...parts);
const set = (...parts: readonly Uint8Array[]): Buffer => der(0x31, ...parts);
const octets = (content: Uint8Array): Buffer => der(0x04, content);
const bits = (content: Uint8Array): Buffer => der(0x03, Buffer.from([0]), content);
const integer = (content: Uint8Array): Buffer => der(0x02, content);
const TRUE = der(0x01, Buffer.from([0xff]));
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));

const ECDSA_WITH_SHA256 = sequence(oid("2a8648ce3d040302"));
const COMMON_NAME = oid("550403");
const BASIC_CONSTRAINTS = oid("551d13");
const KEY_USAGE = oid("551d0f");
const ALTERNATIVE_NAMES = oid("551d11");

const nameOf = (commonName: string): Buffer => sequence(set(sequence(COMMON_NAME, der(0x0c, Buffer.from(commonName)))));
/** As UTCTime, which RFC 5280 requires for dates until 2049. */
const time = (date: Date): Buffer =>
  der(
    0x17,
    Buffer.from(
      date
        .toISOString()
        .replaceAll(/[-:T]|\.\d+/g, "")
        .slice(2),
    ),
  );

interface CertificateData extends CertificateRequest {
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly issuer: Issuer;
  readonly isAuthority: boolean;
}

function certificate({ subject, publicKey, issuer, isAuthority, names, notBefore, notAfter }: CertificateData): string {
  const now = Date.now();
  const serial = randomBytes(8);
  serial[0] = 0x01;
  const extensions = isAuthority
    ? [
        sequence(BASIC_CONSTRAINTS, TRUE, octets(sequence(TRUE))),
        // keyCertSign and cRLSign.
        sequence(KEY_USAGE, TRUE, octets(der(0x03, Buffer.from([1, 0x06])))),
      ]
    : [sequence(ALTERNATIVE_NAMES, octets(sequence(...names.map(alternativeName))))];
  const body = sequence(
    der(0xa0, integer(Buffer.from([2]))),
    integer(serial),
    ECDSA_WITH_SHA256,
    nameOf(issuer.commonName),
    sequence(time(notBefore ?? new Date(now - HOUR_MS)), time(notAfter ?? new Date(now + 24 * HOUR_MS))),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, sequence(...extensions)),
  );
  const whole = sequence(body, ECDSA_WITH_SHA256, bits(sign("sha256", body, issuer.privateKey)));
  const lines = whole.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}

function alternativeName(name: string): Buffer {
  return isIPv4(name) ? der(0x87, Buffer.from(name.split(".").map(Number))) : der(0x82, Buffer.from(name));
}
