// Sends a steady stream of POSTs with bodies and ids, and records the outcome of each.
import { createHash, randomBytes } from 'node:crypto';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

const LOOPS = 6;
const PAUSE_MS = 15;
const BODY_MAX_BYTES = 200_000;
/** Error codes by which the edge states that no part of the request was sent to a service. */
const NOT_SENT = new Set(['TUNNEL_AWAY', 'LOCAL_UNREACHABLE', 'GROUP_UNHEALTHY']);
/** Error code by which the edge states that the connection to the service broke after the request had been sent. */
const SENT = 'LOCAL_CLOSED';

export class PostTrickle {
  /** Outcomes as { id, sum, kind, code, service, beginMs, endMs }. */
  posts = [];
  #place;
  #isOver = false;
  #loops = [];
  #agent = new Agent({ keepAlive: true, maxSockets: LOOPS });

  constructor(place) {
    this.#place = place;
    this.#loops = Array.from({ length: LOOPS }, (_, index) => this.#loop(index));
  }

  /** Stops sending, and waits for running requests. */
  async stop() {
    this.#isOver = true;
    await Promise.all(this.#loops);
    this.#agent.destroy();
  }

  async #loop(index) {
    for (let count = 0; !this.#isOver; count += 1) {
      this.posts.push(await this.#post(`${index}-${count}`, count));
      await pause(PAUSE_MS * (0.5 + Math.random()));
    }
  }

  /** Sends a POST. Every second POST uses a new connection, and every third is chunked. */
  async #post(id, count) {
    const body = randomBytes(1 + Math.floor(BODY_MAX_BYTES * Math.random() ** 3));
    const sum = createHash('sha256').update(body).digest('hex');
    const beginMs = Date.now();
    const outcome = await this.#send(id, body, { isKept: count % 2 === 0, isChunked: count % 3 === 0 });
    return { id, sum, ...outcome, beginMs, endMs: Date.now() };
  }

  #send(id, body, { isKept, isChunked }) {
    return new Promise((resolve) => {
      const asked = request({
        method: 'POST',
        path: '/take',
        host: '127.0.0.1',
        port: this.#place.port,
        agent: isKept ? this.#agent : false,
        headers: {
          host: this.#place.host,
          'x-id': id,
          ...(isChunked ? { 'transfer-encoding': 'chunked' } : { 'content-length': body.length }),
        },
      });
      let hasBegun = false;
      // A reset in the middle of the response also ends up here.
      asked.on('error', ({ message }) => resolve({ kind: hasBegun ? 'cut' : 'no answer', code: message }));
      asked.on('response', (response) => {
        hasBegun = true;
        const pieces = [];
        response.on('data', (piece) => pieces.push(piece));
        response.on('error', () => resolve({ kind: 'cut', code: null }));
        response.on('end', () => resolve(kindOf(response, Buffer.concat(pieces).toString('utf8'))));
      });
      const half = Math.floor(body.length / 2);
      asked.write(body.subarray(0, half));
      asked.end(body.subarray(half));
    });
  }
}

function kindOf({ statusCode, headers }, text) {
  const code = headers['x-tunnel-error'] ?? null;
  if (statusCode === 200) return { kind: 'answered', code, answer: JSON.parse(text) };
  if (statusCode === 502 && code === SENT) return { kind: 'died after it was sent', code };
  if (statusCode === 502 && NOT_SENT.has(code)) return { kind: 'failed before anything was sent', code };
  return { kind: 'other', code: `${statusCode} ${code}` };
}
