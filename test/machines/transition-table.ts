/** Runs an exhaustive transition table: the compiler requires every cell, and this file tests each one on the machine. */

import { describe, expect, it } from "vitest";
import type { AnyStateMachine, ContextFrom, EventFrom } from "xstate";
import { transition } from "xstate";
import { type MachineStep, take } from "../../machines/pure-transition.ts";

/** A cell: the next state, or "not taken" when the machine does not accept the event. */
export type Cell<TState extends string> = TState | "not taken";
export type TransitionTable<TState extends string, TEventType extends string> = Record<
  TState,
  Record<TEventType, Cell<TState>>
>;

/** A situation to try an event in: the machine's state and the possible events. */
export interface TableSubject<TMachine extends AnyStateMachine, TState extends string, TEventType extends string> {
  readonly name: string;
  readonly machine: TMachine;
  readonly contextIn: (state: TState) => ContextFrom<TMachine>;
  readonly event: (type: TEventType) => EventFrom<TMachine>;
  readonly table: TransitionTable<TState, TEventType>;
}

export function holdsItsTable<TMachine extends AnyStateMachine, TState extends string, TEventType extends string>(
  subject: TableSubject<TMachine, TState, TEventType>,
): void {
  const { machine, contextIn, event } = subject;
  describe(subject.name, () => {
    for (const [state, row] of Object.entries(subject.table) as [TState, Record<TEventType, Cell<TState>>][]) {
      for (const [type, expected] of Object.entries(row) as [TEventType, Cell<TState>][]) {
        it(`${state} × ${type} → ${expected}`, () => {
          const from = { value: state, context: contextIn(state) };
          expect(take(machine, from, event(type))?.value ?? "not taken").toBe(expected);
        });
      }
    }

    it("takes every event exactly as XState's own transition() does", () => {
      for (const state of Object.keys(subject.table) as TState[]) {
        for (const type of Object.keys(subject.table[state]) as TEventType[]) {
          const from = { value: state, context: contextIn(state) };
          const taken = take(machine, from, event(type)) ?? from;
          expect(taken, `${state} × ${type}`).toEqual(byXState(machine, from, event(type)));
        }
      }
    });

    it("has exactly these states", () => {
      expect(Object.keys(machine.states).toSorted()).toEqual(Object.keys(subject.table).toSorted());
    });

    it("has exactly these events", () => {
      const [anyRow] = Object.values<Record<TEventType, Cell<TState>>>(subject.table);
      const events: readonly string[] = machine.events;
      expect(events.toSorted()).toEqual(Object.keys(anyRow ?? {}).toSorted());
    });
  });
}

function byXState<TMachine extends AnyStateMachine>(
  machine: TMachine,
  from: MachineStep<ContextFrom<TMachine>>,
  event: EventFrom<TMachine>,
): MachineStep<ContextFrom<TMachine>> {
  const any: AnyStateMachine = machine;
  const [after] = transition(any, any.resolveState({ value: from.value, context: from.context }), event);
  return { value: after.value as string, context: after.context as ContextFrom<TMachine> };
}
