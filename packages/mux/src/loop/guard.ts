// The guard at the rim. Where Node calls us for one connection stands a try; what throws below it costs the owner of that call, and
// nobody else. Hot paths have the try in their own method; everything that listens to an emitter goes through here.
// Not guarded is what many share (registry, groups, the table of sessions): half of a change there must end the process.
import type { EventEmitter } from 'node:events';

/** What one connection, stream, call or message belongs to. */
export interface Guarded {
  /**
   * Something of ours threw while it worked for this owner. Ends what the owner stands for in the clearest way that is left, gives
   * back what it holds, and tells whoever keeps count. `where` names the guarded call, not the mistake.
   */
  abandon(error: unknown, where: string): void;
}

/** Whoever keeps count of what was caught. */
export type ReportInternalError = (error: unknown, where: string) => void;

type Emitter = Pick<EventEmitter, 'on'>;

interface Destroyable {
  destroy(): unknown;
}

/** What an event brings is its emitter's business, and whoever listens knows it. */
export type Listener = (a: never, b: never, c: never, d: never) => void;

export const guard = {
  /**
   * The guarded place is called by its scope and the event: `http2.stream.data`. Four arguments are the most that an event brings
   * (HTTP/2's heads); a list of them would be made anew for each chunk.
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

  /** For what a server brings: there is no owner yet, so the socket among the arguments goes. */
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

/** An owner that cannot even let go in order loses its connection. */
export const abandonOrDestroy = (owner: Guarded, error: unknown, where: string, connection: unknown): void => {
  try {
    owner.abandon(error, where);
  } catch {
    if (isDestroyable(connection)) connection.destroy();
  }
};

const isDestroyable = (given: unknown): given is Destroyable =>
  typeof given === 'object' && given !== null && typeof (given as Partial<Destroyable>).destroy === 'function';
