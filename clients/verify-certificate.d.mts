/** The types of `verify-certificate.mjs`. */
/** The statement of a certificate about a device (an in-toto statement of a test result). */
export interface CertificateStatement {
  readonly subject: readonly { readonly name: string; readonly digest: Readonly<Record<string, string>> }[];
  readonly predicate: {
    readonly result: string;
    readonly configuration: readonly { readonly name: string; readonly digest: Readonly<Record<string, string>> }[];
    readonly provider: string;
    readonly capability: string;
    readonly validUntil: string;
  };
}

export const NOT_PROVEN: readonly string[];

export class NotValid extends Error {}

export interface ProvenStatement {
  readonly envelope: string;
  readonly proof: string;
}

export interface CertificateParts extends ProvenStatement {
  readonly revocation?: ProvenStatement;
}

export interface VerifiedCertificate {
  readonly statement: CertificateStatement;
  readonly index: number;
  readonly size: number;
  readonly isExpired: boolean;
  readonly revocation: { readonly revokedAt: string; readonly reason: string } | undefined;
}

export function verifyCertificate(
  certificate: CertificateParts & { readonly logKeys: readonly string[]; readonly now?: Date },
): Promise<VerifiedCertificate>;

export function partsOf(text: string): CertificateParts;

export function sentenceOf(verified: VerifiedCertificate): string;
