/** A companion and a display of the device kit, as devices under test. */
import type { DeviceUnderTest, PaymentAct, Shown } from "../../../clients/conformance/devices/device.ts";
import { type Companion, companion } from "../../../clients/device-kit/companion.ts";
import type { Outcome } from "../../../clients/device-kit/companion-machine.ts";
import { type Display, display } from "../../../clients/device-kit/display.ts";
import { memoryStorage } from "../../../clients/device-kit/storage/memory.ts";

const STEP_MS = 30_000;

export class KitCompanion implements DeviceUnderTest {
  readonly stepMs = STEP_MS;
  readonly #storage = memoryStorage();
  /** Survives a power cut, because the payment application has a separate power supply. */
  readonly #paid = new Map<string, Outcome>();
  #act: PaymentAct = "approve";
  #held = Promise.withResolvers<void>();
  #baseUrl = "";
  #device: Companion | undefined;

  async enroll({ baseUrl, code }: { readonly baseUrl: string; readonly code: string }): Promise<void> {
    this.#baseUrl = baseUrl;
    this.#start(code);
  }
  async payments(act: PaymentAct): Promise<void> {
    this.#act = act;
    this.#held = Promise.withResolvers<void>();
  }
  async finish(): Promise<void> {
    this.#held.resolve();
  }
  async restart(): Promise<void> {
    this.#start(undefined);
  }
  async shown(): Promise<Shown> {
    throw new Error("A companion shows nothing.");
  }
  async stop(): Promise<void> {
    this.#device?.stop();
  }

  #start(code: string | undefined): void {
    this.#device?.stop();
    this.#device = companion({
      baseUrl: this.#baseUrl,
      storage: this.#storage,
      code,
      launch: async ({ reference }) => {
        const outcome = await this.#pay();
        this.#paid.set(reference, outcome);
        return outcome;
      },
      status: async (reference) => this.#paid.get(reference) ?? null,
    });
  }
  async #pay(): Promise<Outcome> {
    const held = this.#held.promise;
    if (this.#act === "decline") return { outcome: "reported_declined", provider_code: "05" };
    if (this.#act === "cancel") return { outcome: "reported_cancelled", provider_code: "17" };
    if (this.#act === "hold") await held;
    return { outcome: "reported_success", provider_reference: `RRN-${Date.now()}`, provider_code: "00" };
  }
}

export class KitDisplay implements DeviceUnderTest {
  readonly stepMs = STEP_MS;
  readonly #storage = memoryStorage();
  #baseUrl = "";
  #device: Display | undefined;
  #shown: Shown = { state: "", amount: "", qr_payload: "" };

  async enroll({ baseUrl, code }: { readonly baseUrl: string; readonly code: string }): Promise<void> {
    this.#baseUrl = baseUrl;
    this.#start(code);
  }
  async restart(): Promise<void> {
    this.#start(undefined);
  }
  async shown(): Promise<Shown> {
    return this.#shown;
  }
  async payments(): Promise<void> {
    throw new Error("A display takes no payments.");
  }
  async finish(): Promise<void> {
    throw new Error("A display takes no payments.");
  }
  async stop(): Promise<void> {
    this.#device?.stop();
  }

  #start(code: string | undefined): void {
    this.#device?.stop();
    this.#device = display({
      baseUrl: this.#baseUrl,
      storage: this.#storage,
      code,
      render: (shown) => {
        this.#shown = { state: shown?.state ?? "", amount: shown?.amount ?? "", qr_payload: shown?.qr_payload ?? "" };
      },
    });
  }
}
