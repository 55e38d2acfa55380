/** The device under test as the suite reaches it beside HTTP: a person or a program does what the suite asks for. */

/** What the payment application on the device does with the next payments. */
export type PaymentAct =
  | "approve"
  /** Its answer comes twice. */
  | "approve_twice"
  | "decline"
  /** The guest ends it. */
  | "cancel"
  /** It stays open until `finish`. */
  | "hold";

/** What a display shows. */
export interface Shown {
  readonly state: string;
  readonly amount: string;
  /** Undefined where a person looks, who cannot read a QR code. */
  readonly qr_payload?: string | undefined;
}

export interface DeviceUnderTest {
  /** How long the device, or the person at it, has for one step. */
  readonly stepMs: number;
  /** Gives the device the address of the service and a code, which it claims. */
  enroll(setup: { readonly baseUrl: string; readonly code: string }): Promise<void>;
  payments(act: PaymentAct): Promise<void>;
  /** The payment that is held is approved now. */
  finish(): Promise<void>;
  /** The device loses its power, and starts again. */
  restart(): Promise<void>;
  shown(): Promise<Shown>;
  /** The run is over. */
  stop(): Promise<void>;
}
