/** Runs a machine: it handles one event after the other, performs the effects, and manages the timers. */
import type { Platform } from "./platform.ts";

/** The parts of a machine's effects that every kind has. */
interface TimerEffect {
  readonly type: "timer";
  readonly timer: string;
  readonly ms: number;
}

export interface Running<E> {
  dispatch(event: E): void;
  /** After this call the machine handles no event and performs no effect. */
  stop(): void;
  isStopped(): boolean;
}

export function runMachine<S, E, F extends { readonly type: string }>(deps: {
  readonly first: S;
  readonly step: (state: S, event: E) => { readonly state: S; readonly effects: readonly F[] };
  readonly platform: Platform;
  readonly perform: (effect: Exclude<F, TimerEffect>) => void;
  readonly onState: (state: S) => void;
}): Running<E> {
  const { step, platform, perform, onState } = deps;
  let state = deps.first;
  let isStopped = false;
  let isBusy = false;
  const events: E[] = [];
  const timers: Record<string, unknown> = {};
  const setTimer = ({ timer, ms }: TimerEffect): void => {
    platform.clearTimeout(timers[timer] as never);
    timers[timer] = platform.setTimeout(() => dispatch({ type: "timer", timer } as E), ms);
  };
  function dispatch(event: E): void {
    events.push(event);
    // An effect may dispatch an event at once. The event waits until the step is complete.
    if (isBusy) return;
    isBusy = true;
    try {
      for (let next = events.shift(); next !== undefined; next = events.shift()) {
        if (isStopped) return;
        const taken = step(state, next);
        const isChanged = taken.state !== state;
        state = taken.state;
        for (const effect of taken.effects) {
          if (isStopped) break;
          if (effect.type === "timer") setTimer(effect as unknown as TimerEffect);
          else perform(effect as Exclude<F, TimerEffect>);
        }
        if (isChanged && !isStopped) onState(state);
      }
    } finally {
      isBusy = false;
    }
  }
  return {
    dispatch,
    stop() {
      isStopped = true;
      Object.keys(timers).forEach((name) => platform.clearTimeout(timers[name] as never));
    },
    isStopped: () => isStopped,
  };
}
