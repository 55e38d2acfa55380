/**
 * Who an issue's account is. A callback and a statement of the account of one provider config raise the same issue: a run uses
 * the config's key where the statement's account has a config, and its own key elsewhere. That never changes for an account,
 * or every issue of it would be raised anew.
 */

/** The account of a provider config. */
export const providerAccountKey = (configId: number): string => `provider:${configId}`;

/** An account whose statements are imported and that no provider config stands for. */
export const statementAccountKey = (statementAccountId: number): string => `statement:${statementAccountId}`;
