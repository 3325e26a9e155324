// A place of the NAT matrix from the test's perspective: the agent in its namespace, and the messages of its clients with their times of
// arrival.
import { startChild } from '../../../bench/lib/children.mjs';

const AGENT = new URL('agent.mjs', import.meta.url).pathname;

export class Place {
  #agent;
  #asked = new Map();
  #lastId = 0;
  #clients = new Map();
  #waiting = new Set();

  constructor(namespace) {
    const args = ['netns', 'exec', namespace, process.execPath, AGENT];
    this.#agent = startChild({
      name: namespace,
      command: 'ip',
      args,
      onLine: (line) => this.#onLine(JSON.parse(line)),
    });
  }

  ask(command, given = {}) {
    this.#lastId += 1;
    const id = this.#lastId;
    this.#agent.process.stdin.write(`${JSON.stringify({ id, command, ...given })}\n`);
    return new Promise((resolve) => this.#asked.set(id, resolve));
  }

  /** Returns the record of a client: its events in order, the result of its first connection, and its exit. */
  client(name) {
    if (!this.#clients.has(name)) this.#clients.set(name, { events: [], stderr: [], first: null, exit: null });
    return this.#clients.get(name);
  }

  /** Polls `look` and returns its first result, or null after the time limit. */
  async until(limitMs, look) {
    const deadline = Date.now() + limitMs;
    for (;;) {
      const found = look();
      if (found) return found;
      const left = deadline - Date.now();
      if (left <= 0) return null;
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#waiting.add(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  #onLine({ id, client, event, stderr, first, exit, ...answer }) {
    if (id !== undefined) {
      this.#asked.get(id)?.(answer);
      this.#asked.delete(id);
      return;
    }
    const known = this.client(client);
    if (event !== undefined) known.events.push({ ...event, heardAt: Date.now() });
    if (stderr !== undefined) known.stderr.push(stderr);
    if (first !== undefined) known.first = first;
    if (exit !== undefined) known.exit = exit;
    for (const wake of [...this.#waiting]) wake();
    this.#waiting.clear();
  }
}
