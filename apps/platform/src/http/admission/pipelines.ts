// Requests of one connection, served one after the other. Node.js hands over every request that it has read: a caller that sends thousands at once on a
// connection, and reads no answer, would have all of these answers made, and kept in memory.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Requests of one connection that wait for answers before theirs; one more ends the connection. */
const PIPELINED_MAX = 32;

interface Next {
  readonly response: Pick<ServerResponse, 'once'>;
  readonly begin: () => void;
}

type Connection = Pick<IncomingMessage['socket'], 'destroyed' | 'destroy'>;

export class Pipelines {
  readonly #pipelines = new WeakMap<Connection, Pipeline>();

  /** Begins when the answers before this one are out. false: too many requests of the connection wait already, and it was ended. */
  enter(connection: Connection, response: Next['response'], begin: () => void): boolean {
    let pipeline = this.#pipelines.get(connection);
    if (pipeline === undefined) {
      pipeline = new Pipeline(connection);
      this.#pipelines.set(connection, pipeline);
    }
    return pipeline.enter({ response, begin });
  }
}

/** The requests of one connection, as long as it lasts. */
class Pipeline {
  readonly #connection: Connection;
  #isServing = false;
  /** Behind the request that is being served. */
  readonly #waiting: Next[] = [];

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  enter(next: Next): boolean {
    if (!this.#isServing) this.#begin(next);
    else if (this.#waiting.length < PIPELINED_MAX) this.#waiting.push(next);
    else if (!this.#connection.destroyed) {
      this.#connection.destroy();
      return false;
    }
    return true;
  }

  #begin({ response, begin }: Next): void {
    this.#isServing = true;
    response.once('close', this.#onEnded);
    begin();
  }

  readonly #onEnded = (): void => {
    this.#isServing = false;
    const next = this.#connection.destroyed ? undefined : this.#waiting.shift();
    if (next !== undefined) this.#begin(next);
  };
}
