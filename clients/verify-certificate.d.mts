/** What a certificate says of a device (in-toto statement of a test result). */
export interface CertificateStatement {
  readonly subject: readonly { readonly name: string; readonly digest: Readonly<Record<string, string>> }[];
  readonly predicate: {
    readonly result: string;
    readonly provider: string;
    readonly capability: string;
    readonly validUntil: string;
  };
}

export declare const NOT_PROVEN: readonly string[];
export declare class NotValid extends Error {}
export declare function verifyCertificate(certificate: {
  readonly envelope: string;
  readonly proof: string;
  readonly logKey: string;
  readonly now?: Date;
}): Promise<{
  readonly statement: CertificateStatement;
  readonly index: number;
  readonly size: number;
  readonly isExpired: boolean;
}>;
