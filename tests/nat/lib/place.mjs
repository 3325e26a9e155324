// A place in the matrix as the test sees it: an agent in its namespace, and what the clients that it runs have said, with the time it was heard.
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

  /** What a client has said: its events in order, how its first connection went, how it ended. */
  client(name) {
    if (!this.#clients.has(name)) this.#clients.set(name, { events: [], stderr: [], first: null, exit: null });
    return this.#clients.get(name);
  }

  /** Gives what `look` finds in time, or null. */
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
