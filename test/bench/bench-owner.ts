/** The user in whose name a bench works, with all permissions that it needs at the seeded organization. */
import type { Caller } from "../../services/bus/messages/caller.ts";
import { seedSandbox } from "../../services/bus/messages/sandbox-organization.ts";
import { call } from "../../services/bus/operation.ts";
import type { BenchWorld } from "./bench-world.ts";

export async function benchOwner(world: BenchWorld): Promise<Caller> {
  const passwords = { ownerPassword: "bench owner password", cashierPassword: "bench cashier password" };
  const seeded = await call(world.bus.nc, seedSandbox, passwords, 20_000);
  return {
    userId: 1,
    name: "Bench",
    organizationId: seeded.organizationId,
    role: "owner",
    permissions: ["organization.manage", "payments.collect"],
  };
}
