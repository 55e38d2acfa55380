/** The chaos world with a payment provider: an account at the sandbox provider, and an owner's test config that names it. */
import { randomBytes } from "node:crypto";
import { vi } from "vitest";
import { freePort } from "../support/free-port.ts";
import { CallbackWitness } from "./callback-witness.ts";
import { addStations, BEHIND_PROXY, type ChaosWorld, startChaosSystem } from "./chaos-world.ts";
import { type DividedServices, divideServices } from "./divided-services.ts";
import { offersQr, openProviderAccount, type ProviderAccount } from "./provider-account.ts";
import type { Random } from "./random.ts";
import type { Pieces } from "./strikes.ts";

/** The guest pays after this time. It is long enough for the display of the QR and for kills before the payment. */
const DECIDES_AFTER_MS = 700;
/** The longest time until a new station has its provider's config. */
const OFFERED_WITHIN_MS = 15_000;

export interface ProviderSide extends ProviderAccount {
  readonly witness: CallbackWitness;
  readonly divided: DividedServices;
}

export interface ProviderWorld extends ChaosWorld {
  readonly provider: ProviderSide;
  readonly pieces: Pieces;
  stop(): Promise<void>;
}

/** Resolves when every station offers QRs. */
export async function startProviderWorld(stationCount: number, random: Random): Promise<ProviderWorld> {
  const people = await startChaosSystem();
  const { system, owner, cashier } = people;
  if (system.postgres === undefined) throw new Error("This system has no separate PostgreSQL.");
  const witness = new CallbackWitness(system.baseUrl, random);
  const sandboxPort = await freePort();
  const url = `http://127.0.0.1:${sandboxPort}`;
  const newKey = (): string => randomBytes(32).toString("base64url");
  const installationKey = newKey();
  const divided = await divideServices(system, {
    ...BEHIND_PROXY,
    PROVIDER_SECRETS_KEY: newKey(),
    SANDBOX_PROVIDER_KEY: newKey(),
    SANDBOX_PROVIDER_INSTALLATION_KEY: installationKey,
    SANDBOX_PROVIDER_URL: url,
    SANDBOX_PROVIDER_PORT: String(sandboxPort),
    SANDBOX_PROVIDER_DECIDES_AFTER_MS: String(DECIDES_AFTER_MS),
    PROVIDER_CALLBACK_BASE_URL: await witness.listen(),
  });
  const { filialId } = system.sandbox;
  const account = await openProviderAccount({ owner, filialId, url, installationKey });
  const stations = await addStations(people, stationCount);
  await vi.waitFor(() => offersQr(cashier, stations), { timeout: OFFERED_WITHIN_MS, interval: 100 });
  const { services, providers, sandboxProvider } = divided.processes;
  const { stations: host, gateway } = system.processes;
  return {
    ...people,
    stations,
    provider: { ...account, witness, divided },
    pieces: {
      stations: host,
      gateway,
      services,
      providers,
      sandboxProvider,
      nats: system.nats,
      postgres: system.postgres,
    },
    async stop() {
      await divided.stop();
      await witness.stop();
      await system.stop();
    },
  };
}
