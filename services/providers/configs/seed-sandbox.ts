/** The sandbox's own provider config, made for whoever operates the installation, as often as the system starts. */
import type { Caller } from "../../bus/messages/caller.ts";
import type { seedSandboxProvider } from "../../bus/messages/provider-configs.ts";
import type { ReplyOf, RequestOf } from "../../bus/operation.ts";
import type { ProvidersDeps } from "../deps.ts";
import { findActiveConfig } from "../sql/configs.ts";
import { OPERATOR } from "../sql/events.ts";
import { createConfig } from "./create-config.ts";

const MODE = "test";

/** Refuses as `createConfig` does; what is there already is left alone, whatever provider it is of. */
export async function seedSandbox(
  deps: ProvidersDeps,
  { organizationId, filialId }: RequestOf<typeof seedSandboxProvider>,
): Promise<ReplyOf<typeof seedSandboxProvider>> {
  const known = await findActiveConfig(deps.database, { filialId, mode: MODE });
  if (known !== undefined) return { configId: known.config_id };
  const caller = operatorFor(organizationId);
  const facts = { filialId, kind: "sandbox", mode: MODE, name: "Sandbox provider", settings: {} } as const;
  const { config } = await createConfig(deps, { caller, ...facts }, OPERATOR);
  return { configId: config.configId };
}

/** What an owner may do; the trail names the operator. */
function operatorFor(organizationId: number): Caller {
  return { userId: 0, name: "", organizationId, role: "owner", permissions: ["organization.manage"] };
}
