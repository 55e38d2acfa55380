/** The adapters by kind. */
import type { PROVIDER_KINDS } from "../../bus/messages/providers.ts";
import type { ProviderAdapter } from "./adapter.ts";
import { emvcoGeneric } from "./emvco-generic.ts";
import type { HttpClient } from "./http-client.ts";
import { sandboxAdapter } from "./sandbox.ts";

export type ProviderKind = (typeof PROVIDER_KINDS)[number];
export type Adapters = Readonly<Record<ProviderKind, ProviderAdapter>>;

export function createAdapters(http: HttpClient, addresses: { readonly sandboxUrl: string }): Adapters {
  return { sandbox: sandboxAdapter(http, addresses.sandboxUrl), emvco_generic: emvcoGeneric };
}
