// Serves the requests of a connection one after the other. Node.js emits every request it has read. Without this queue, a caller that
// sends thousands of requests on a connection and reads no response would make the server produce all responses and keep them in memory.
import type { IncomingMessage, ServerResponse } from 'node:http';

/** Maximum number of requests per connection that wait for earlier responses. A further request closes the connection. */
const PIPELINED_MAX = 32;

interface Next {
  readonly response: Pick<ServerResponse, 'once'>;
  readonly begin: () => void;
}

type Connection = Pick<IncomingMessage['socket'], 'destroyed' | 'destroy'>;

export class Pipelines {
  readonly #pipelines = new WeakMap<Connection, Pipeline>();

  /**
   * Calls `begin` when the earlier requests of the connection have been answered. Returns false, and closes the connection, if too many
   * requests are already waiting.
   */
  enter(connection: Connection, response: Next['response'], begin: () => void): boolean {
    let pipeline = this.#pipelines.get(connection);
    if (pipeline === undefined) {
      pipeline = new Pipeline(connection);
      this.#pipelines.set(connection, pipeline);
    }
    return pipeline.enter({ response, begin });
  }
}

/** The queue of requests of a connection, of which one is served at a time. */
class Pipeline {
  readonly #connection: Connection;
  #isServing = false;
  /** Requests waiting behind the request being served. */
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
