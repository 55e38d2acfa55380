/**
 * The notice of a host that takes no more commands for a partition.
 *
 * A command may be on its way between two servers while the host unsubscribes. The server at the host then drops the
 * command, and no message reports this to the caller. The notice uses the same connection between the servers as the
 * end of the subscription, so it arrives after it. A caller that receives the notice sends its command again soon, and
 * the next host gets it.
 *
 * Requests to services need no such notice: for a queue group, a server passes a request on to another process.
 */
import type { NatsConnection } from "nats";
import { CLOSED_PARTITIONS, closedPartitionSubject } from "./subjects.ts";

type Listener = (subject: string) => void;
const known = new WeakMap<NatsConnection, Set<Listener>>();

/** Call it after the end of the subscription to the partition's commands. */
export function publishClosed(nc: NatsConnection, partition: number): void {
  // Without a connection no command is on its way.
  if (!nc.isClosed() && !nc.isDraining()) nc.publish(closedPartitionSubject(partition));
}

/** Calls `notify` at each notice for the partition, until the returned function is called. */
export function onClosed(nc: NatsConnection, partition: number, notify: () => void): () => void {
  const subject = closedPartitionSubject(partition);
  const listeners = known.get(nc) ?? subscribe(nc);
  const listener: Listener = (closed) => {
    if (closed === subject) notify();
  };
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function subscribe(nc: NatsConnection): Set<Listener> {
  const listeners = new Set<Listener>();
  nc.subscribe(CLOSED_PARTITIONS, {
    callback: (error, message) => {
      if (error === null) for (const listener of listeners) listener(message.subject);
    },
  });
  known.set(nc, listeners);
  return listeners;
}
