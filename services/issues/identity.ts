/**
 * The key of an issue's account: that of its provider config, so that a callback and a statement raise the same issue. A
 * statement's account without a config has the key `statement:` and its id. An account's key never changes, or all its issues
 * would be raised again.
 */
export const providerAccountKey = (configId: number): string => `provider:${configId}`;
