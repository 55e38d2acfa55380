/** A countdown: how long something still takes. */
import { now } from "./clock.ts";
import { minutesAndSeconds } from "./format.ts";

interface CountdownProps {
  readonly until: string;
  /** When the wait began. The page's clock is up to a second behind; the countdown must not show more than the whole wait. */
  readonly since: string;
  readonly label?: string;
}

/** Counts down to a moment of the server's clock. */
export function Countdown({ until, since, label }: CountdownProps) {
  const untilMs = Date.parse(until);
  const leftMs = Math.min(untilMs - now.value, untilMs - Date.parse(since));
  return (
    <span class="countdown" role="timer" aria-label={label}>
      {minutesAndSeconds(leftMs)}
    </span>
  );
}
