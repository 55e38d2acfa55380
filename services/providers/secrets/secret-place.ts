/** Where a provider's secret belongs, for the keyring: what was sealed for one place does not open in another. */
export function providerSecretPlace({ configId, name }: { readonly configId: number; readonly name: string }): string {
  return `provider-secret:${configId}:${name}`;
}
