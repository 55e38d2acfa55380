/** Who caused a commit. Ids are those of the registry. `system` is a deadline, a recovery or the liveness feed. */
export type Actor =
  | { readonly kind: "device"; readonly id: number }
  | { readonly kind: "cashier"; readonly id: number; readonly name: string }
  /** The name is present when the station shows it to the cashier. */
  | { readonly kind: "owner"; readonly id: number; readonly name?: string | undefined }
  | { readonly kind: "registry"; readonly id: number }
  | { readonly kind: "settlement"; readonly id: number }
  /** A payment provider. The id is the provider config's. */
  | { readonly kind: "provider"; readonly id: number }
  | { readonly kind: "system"; readonly id: number };
