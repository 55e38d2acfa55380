/** How the suite controls the device under test: a person or a program carries out its instructions. */

/** What the payment application on the device does with the next payments. */
export type PaymentAct =
  | "approve"
  /** The payment application answers twice. */
  | "approve_twice"
  | "decline"
  /** The guest cancels the payment. */
  | "cancel"
  /** The payment stays open until `finish`. */
  | "hold";

/** What a display shows. */
export interface Shown {
  readonly state: string;
  readonly amount: string;
  /** Undefined when a person reads the display, because a person cannot read a QR code. */
  readonly qr_payload?: string | undefined;
}

export interface DeviceUnderTest {
  /** How long the device, or the person at it, has for one step. */
  readonly stepMs: number;
  /** Gives the device the address of the service and a code, which it claims. */
  enroll(setup: { readonly baseUrl: string; readonly code: string }): Promise<void>;
  payments(act: PaymentAct): Promise<void>;
  /** Approves the held payment. */
  finish(): Promise<void>;
  /** Cuts the device's power, and starts it again. */
  restart(): Promise<void>;
  shown(): Promise<Shown>;
  /** The run is over. */
  stop(): Promise<void>;
}
