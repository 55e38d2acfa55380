/**
 * The state of the display, as the kit reports it. After each change the page renders everything from it. The page is small;
 * a library that tracks single changes would be a quarter of its size.
 */
import type { DisplayState } from "../../../clients/device-kit/client.ts";
import type { Problem } from "../../../clients/device-kit/device-machine.ts";

export interface View {
  /** Null: there is nothing that the display may show. */
  readonly state: DisplayState | null;
  readonly isStale: boolean;
  /** Empty, or why the display may not act. */
  readonly blockedReason: string;
  readonly phase: "starting" | "needs_code" | "enrolling" | "enrolled";
  /** The service permanently refuses the requests: a defect, or a code of another kind of device. */
  readonly isStopped: boolean;
  readonly problem: Problem | null;
  /** On the monotonic clock; null before the first answer. */
  readonly lastAnswerAtMs: number | null;
  readonly isOpenElsewhere: boolean;
  /** The part of the code that a person has typed. */
  readonly typedCode: string;
  readonly isTypedWrong: boolean;
}

/** What a person can do. */
export interface Actions {
  change(changes: Partial<View>): void;
  enroll(code: string): void;
  /** Forgets the credential and starts again. */
  forget(): Promise<void>;
}

export const FIRST_VIEW: View = {
  state: null,
  isStale: false,
  blockedReason: "",
  phase: "starting",
  isStopped: false,
  problem: null,
  lastAnswerAtMs: null,
  isOpenElsewhere: false,
  typedCode: "",
  isTypedWrong: false,
};

export const isPairing = ({ phase }: View): boolean => phase === "needs_code" || phase === "enrolling";
export const isRead = ({ state }: View): boolean => state !== null && state.state !== "idle";
