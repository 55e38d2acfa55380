/** The adapters by kind. */
import type { PROVIDER_KINDS } from "../../bus/messages/provider-configs.ts";
import type { ProviderAdapter } from "./adapter.ts";
import { emvcoGeneric } from "./emvco-generic.ts";
import type { HttpClient } from "./http-client.ts";
import { type SandboxProviderPlace, sandboxAdapter } from "./sandbox.ts";

export type ProviderKind = (typeof PROVIDER_KINDS)[number];
export type Adapters = Readonly<Record<ProviderKind, ProviderAdapter>>;

export function createAdapters(http: HttpClient, places: { readonly sandbox: SandboxProviderPlace }): Adapters {
  return { sandbox: sandboxAdapter(http, places.sandbox), emvco_generic: emvcoGeneric };
}
