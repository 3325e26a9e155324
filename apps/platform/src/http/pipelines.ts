// Requests of one connection, served one after the other. Node.js hands over every request that it has read: a caller that sends thousands at once on a
// connection, and reads no answer, would have all of these answers made, and kept in memory.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { LIMITS } from '../limits.ts';

interface Next {
  readonly response: Pick<ServerResponse, 'once'>;
  readonly begin: () => void;
}

type Connection = Pick<IncomingMessage['socket'], 'destroyed' | 'destroy'>;

export class Pipelines {
  /** Of each connection with a request that is being served: the requests behind that one. */
  readonly #waiting = new WeakMap<Connection, Next[]>();

  /** Begins when the answers before this one are out. false: too many requests of the connection wait already, and it was ended. */
  enter(connection: Connection, response: Next['response'], begin: () => void): boolean {
    const waiting = this.#waiting.get(connection);
    if (waiting === undefined) {
      this.#waiting.set(connection, []);
      this.#begin(connection, { response, begin });
    } else if (waiting.length < LIMITS.PIPELINED_MAX) {
      waiting.push({ response, begin });
    } else if (!connection.destroyed) {
      connection.destroy();
      return false;
    }
    return true;
  }

  #begin(connection: Connection, { response, begin }: Next): void {
    response.once('close', () => this.#ended(connection));
    begin();
  }

  #ended(connection: Connection): void {
    const next = connection.destroyed ? undefined : this.#waiting.get(connection)?.shift();
    if (next === undefined) this.#waiting.delete(connection);
    else this.#begin(connection, next);
  }
}
