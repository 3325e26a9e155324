// Visitors of a group for failover tests: GETs over keep-alive connections and POSTs with bodies, with the result of each request.
import { createHash, randomBytes } from 'node:crypto';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { type PublicEndpoint, wholeAnswer } from './http-tunnels.fixture.ts';

export interface Visit {
  readonly id: string;
  readonly method: 'GET' | 'POST';
  /** Checksum of the request body. */
  readonly sum: string;
  /** `cut`: the connection ended after the start of the response. `none`: the connection ended before the first byte of a response. */
  readonly outcome: 'answered' | 'cut' | 'none';
  readonly status: number;
  /** Error code of the edge. */
  readonly error: string | undefined;
  readonly text: string;
}

const GET_LOOPS = 8;
const POST_LOOPS = 4;
const PATHS = ['/small', '/slow', '/drip'];
const POST_PAUSE_MS = 10;

export const sumOf = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** Sends requests until the load is stopped. Each loop has a single request in progress. */
export class GroupLoad {
  readonly visits: Visit[] = [];
  readonly #endpoint: PublicEndpoint;
  readonly #agent = new Agent({ keepAlive: true });
  readonly #loops: readonly Promise<void>[];
  #isOver = false;

  constructor(endpoint: PublicEndpoint) {
    this.#endpoint = endpoint;
    this.#loops = [
      ...Array.from({ length: GET_LOOPS }, (_, index) => this.#getLoop(index)),
      ...Array.from({ length: POST_LOOPS }, (_, index) => this.#postLoop(index)),
    ];
  }

  /** Stops the load after the requests in progress have finished. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
    this.#agent.destroy();
  }

  async #getLoop(loop: number): Promise<void> {
    for (let count = 0; !this.#isOver; count += 1) {
      await this.#visit(`get-${loop}-${count}`, 'GET', PATHS[count % PATHS.length] ?? '/small', Buffer.alloc(0));
    }
  }

  async #postLoop(loop: number): Promise<void> {
    for (let count = 0; !this.#isOver; count += 1) {
      const body = randomBytes(1 + Math.floor(100_000 * Math.random() ** 3));
      await this.#visit(`post-${loop}-${count}`, 'POST', '/take', body);
      await pause(POST_PAUSE_MS);
    }
  }

  async #visit(id: string, method: 'GET' | 'POST', path: string, body: Buffer): Promise<void> {
    const end = await this.#ask(id, method, path, body);
    this.visits.push({ id, method, sum: sumOf(body), status: 0, error: undefined, text: '', ...end });
  }

  #ask(id: string, method: string, path: string, body: Buffer): Promise<Pick<Visit, 'outcome'> & Partial<Visit>> {
    return new Promise((resolve) => {
      const { host, port } = this.#endpoint;
      const length = method === 'POST' ? { 'content-length': body.length } : {};
      const headers = { host, 'x-id': id, ...length };
      const asked = request({ method, path, hostname: '127.0.0.1', port, headers, agent: this.#agent });
      let hasBegun = false;
      // A reset in the middle of a response also causes an `error` event of the request.
      asked.on('error', () => resolve({ outcome: hasBegun ? 'cut' : 'none' }));
      asked.on('response', (response) => {
        hasBegun = true;
        void readAnswer(response).then(resolve);
      });
      asked.end(body);
    });
  }
}

const readAnswer = async (response: IncomingMessage): Promise<Pick<Visit, 'outcome'> & Partial<Visit>> => {
  try {
    const { status, headers, text } = await wholeAnswer(response);
    return { outcome: 'answered', status, error: headers['x-tunnel-error'] as string | undefined, text };
  } catch {
    return { outcome: 'cut' };
  }
};
