/** The key that the issues of an account have: that of its provider config, where it has one, because callbacks raise them too. */
interface Keyed {
  readonly account_id: number;
  readonly config_id: number | null;
}

export const accountKey = ({ account_id: accountId, config_id: configId }: Keyed): string =>
  configId === null ? `statement:${accountId}` : `provider:${configId}`;

/** The account whose issues have the key. Undefined for a provider config without an account. */
export const accountOf = <T extends Keyed>(accounts: readonly T[], key: string): T | undefined =>
  accounts.find((account) => accountKey(account) === key);
