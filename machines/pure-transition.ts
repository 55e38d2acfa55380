/**
 * One pure step of an XState machine from a stored state. The program never starts an actor, because an actor would act before
 * the commit.
 *
 * XState's `transition()` function builds an actor for each call (about 30 µs). The machine's `transition` method does the same
 * computation in a scope from its caller (about 6 µs). So this module keeps one inert scope per machine. A test checks that
 * both give the same result for every state and event.
 */
import {
  type ActorScope,
  type AnyMachineSnapshot,
  type AnyStateMachine,
  type ContextFrom,
  createActor,
  type EventFrom,
  type EventObject,
} from "xstate";

export interface MachineStep<TContext> {
  readonly value: string;
  readonly context: TContext;
}

type InertScope = ActorScope<AnyMachineSnapshot, EventObject>;

/** One scope per machine. A program has few machines, and all are module constants. */
const scopes = new WeakMap<AnyStateMachine, InertScope>();

/**
 * The next state and context, or undefined when the machine does not accept this event in this state. An accepted event may
 * change nothing, for example a reset of a pending device. Then the result is a step, not undefined.
 */
export function take<TMachine extends AnyStateMachine>(
  machine: TMachine,
  from: MachineStep<ContextFrom<TMachine>>,
  event: EventFrom<TMachine>,
): MachineStep<ContextFrom<TMachine>> | undefined {
  const any: AnyStateMachine = machine;
  const before: AnyMachineSnapshot = any.resolveState({ value: from.value, context: from.context });
  if (!before.can(event)) return undefined;
  const after = any.transition(before, event, inertScope(any)) as AnyMachineSnapshot;
  return { value: after.value as string, context: after.context as ContextFrom<TMachine> };
}

function inertScope(machine: AnyStateMachine): InertScope {
  const known = scopes.get(machine);
  if (known !== undefined) return known;
  const self = createActor(machine) as InertScope["self"];
  const scope: InertScope = {
    self,
    id: "",
    sessionId: "",
    system: self.system,
    logger: () => {},
    defer: refuseEffect,
    emit: refuseEffect,
    stopChild: refuseEffect,
    actionExecutor: refuseEffect,
  };
  scopes.set(machine, scope);
  return scope;
}

/** A pure step must have no side effects: `assign` is the only action that machines use. */
function refuseEffect(): never {
  throw new Error("A machine tried to act inside a pure step.");
}
