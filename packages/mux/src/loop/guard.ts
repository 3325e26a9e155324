// Guards callbacks from Node.js. Every callback that Node.js calls for a connection runs in a try block, so that an exception ends only the
// owner of the callback. Hot paths have the try block in their own method; event listeners use `guard`. Code that changes shared state
// (registry, groups, session table) is not guarded: after half a change the process must end.
import type { EventEmitter } from 'node:events';

/** Owner of a connection, stream, call or message. Exceptions thrown while working for the owner are caught and passed to it. */
export interface Guarded {
  /**
   * Called when an internal error occurred while working for this owner. Ends the owner's connection as cleanly as possible, frees its
   * resources, and reports the error. `where` names the guarded callback, not the cause.
   */
  abandon(error: unknown, where: string): void;
}

/** Counts and logs an exception that was caught in an internal callback. */
export type ReportInternalError = (error: unknown, where: string) => void;

type Emitter = Pick<EventEmitter, 'on'>;

interface Destroyable {
  destroy(): unknown;
}

/** Event listener. The event's emitter determines the argument types, and the listener declares them. */
export type Listener = (a: never, b: never, c: never, d: never) => void;

export const guard = {
  /**
   * Adds a guarded listener. Reports name the callback by scope and event, for example `http2.stream.data`. Four arguments are the maximum
   * of any event (HTTP/2 headers); a rest parameter would allocate an array per chunk.
   */
  listen(emitter: Emitter, event: string, owner: Guarded, scope: string, act: Listener): void {
    emitter.on(event, (a: unknown, b: unknown, c: unknown, d: unknown) => {
      try {
        act(a as never, b as never, c as never, d as never);
      } catch (error) {
        abandonOrDestroy(owner, error, `${scope}.${event}`, emitter);
      }
    });
  },

  /** Adds a guarded listener to a server. No owner exists yet, so a socket among the arguments is destroyed. */
  accept(server: Emitter, event: string, report: ReportInternalError, scope: string, act: Listener): void {
    server.on(event, (a: unknown, b: unknown, c: unknown, d: unknown) => {
      try {
        act(a as never, b as never, c as never, d as never);
      } catch (error) {
        report(error, `${scope}.${event}`);
        for (const given of [a, b, c, d]) if (isDestroyable(given)) given.destroy();
      }
    });
  },
};

/** Passes the exception to the owner's abandon(), and destroys the connection if abandon() throws as well. */
export const abandonOrDestroy = (owner: Guarded, error: unknown, where: string, connection: unknown): void => {
  try {
    owner.abandon(error, where);
  } catch {
    if (isDestroyable(connection)) connection.destroy();
  }
};

const isDestroyable = (given: unknown): given is Destroyable =>
  typeof given === 'object' && given !== null && typeof (given as Partial<Destroyable>).destroy === 'function';
