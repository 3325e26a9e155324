// Visitors of a tunnel whose policy changes: some that judge every answer, and wrk beside them for the load.
import { Agent, request } from 'node:http';
import { fileURLToPath } from 'node:url';
import { startChild } from '../../../../bench/lib/children.mjs';
import { LASTING } from './publisher.mjs';

const ROLL = fileURLToPath(new URL('roll.lua', import.meta.url));
const REQUEST_TIMEOUT_MS = 20_000;
const WRK_TIMEOUT_SECS = 20;
/** What may be told while clients or the edge are away: that nobody is there. */
const AWAY = [404, 502, 503];

/** One after the other on connections that stay open, each request with the revision that it must at least meet. */
export class Visitors {
  /** The highest revision whose registration was answered. */
  answered = 0;
  served = 0;
  turnedAway = 0;
  /** Answers that nobody was there, or none at all. */
  unserved = 0;
  wrong = [];
  #mayFail;
  #isOver = false;
  #loops;

  /** `mayFail`: something is being cut or killed, so that some are not served; nobody is served wrongly all the same. */
  constructor({ host, port, connections, answered = 0, mayFail = false }) {
    this.answered = answered;
    this.#mayFail = mayFail;
    const agent = new Agent({ keepAlive: true, maxSockets: connections });
    this.#loops = Promise.all(Array.from({ length: connections }, (_, nth) => this.#loop({ host, port, agent, nth })));
  }

  async stop() {
    this.#isOver = true;
    await this.#loops;
  }

  /** Kinds of what went wrong, with their counts. */
  get words() {
    const kinds = new Map();
    for (const wrong of this.wrong) kinds.set(wrong, (kinds.get(wrong) ?? 0) + 1);
    return [...kinds].slice(0, 5).map(([kind, count]) => `${count} × ${kind}`);
  }

  async #loop({ host, port, agent, nth }) {
    for (let turn = nth; !this.#isOver; turn += 1) {
      // One in eight is a stranger, who must never get in.
      const isStranger = turn % 8 === 0;
      const headers = { host, ...(isStranger ? {} : { 'x-tunnel-token': LASTING }) };
      const atLeast = this.answered;
      const before = this.unserved;
      try {
        this.#judge(await ask({ port, agent, headers }), { atLeast, isStranger });
      } catch (error) {
        this.unserved += 1;
        if (!this.#mayFail) this.wrong.push(`a request failed: ${error.message}`);
      }
      // Nobody is there: whoever comes back needs the machine, too.
      if (this.unserved > before) await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  #judge({ status, revision, letInBy }, { atLeast, isStranger }) {
    if (this.#mayFail && AWAY.includes(status)) {
      this.unserved += 1;
      return;
    }
    if (isStranger) this.turnedAway += 1;
    else this.served += 1;
    if (status !== (isStranger ? 401 : 200)) this.wrong.push(`${isStranger ? 'a stranger' : 'a request'}: ${status}`);
    if (!(revision >= atLeast)) this.wrong.push(`revision ${revision} where ${atLeast} was in force`);
    // One request is decided by one policy.
    if (!isStranger && letInBy !== revision) this.wrong.push(`let in by ${letInBy}, answered by ${revision}`);
  }
}

function ask({ port, agent, headers }) {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port, agent, headers, timeout: REQUEST_TIMEOUT_MS }, (response) => {
      response.resume();
      const { 'x-revision': revision, 'x-let-in-by': letInBy } = response.headers;
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode, revision: Number(revision), letInBy: Number(letInBy) }),
      );
    });
    asked.once('timeout', () => asked.destroy(new Error('no answer in time')));
    asked.once('error', reject).end();
  });
}

/** Known to every revision: none of its requests may fail. */
export class WrkLoad {
  #wrk;
  #report = null;

  constructor({ host, port, connections, limitSecs }) {
    this.#wrk = startChild({
      name: 'wrk',
      command: 'wrk',
      args: [
        ...['--threads', '1', '--connections', String(connections), '--duration', `${limitSecs}s`],
        ...['--timeout', `${WRK_TIMEOUT_SECS}s`, '--script', ROLL],
        ...['--header', `Host: ${host}`, '--header', `X-Tunnel-Token: ${LASTING}`, `http://127.0.0.1:${port}/`],
      ],
      onLine: (line) => {
        if (line.startsWith('report ')) this.#report = JSON.parse(line.slice('report '.length));
      },
    });
  }

  /** Its own counts. */
  async stop() {
    // It then ends in order, and says what it has counted.
    process.kill(this.#wrk.pid, 'SIGINT');
    await this.#wrk.exited;
    if (this.#report === null) throw new Error(`wrk said nothing that can be read: ${this.#wrk.output}`);
    return this.#report;
  }
}
