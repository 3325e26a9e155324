// Runs wrk with keep-alive connections through a relay that classifies each failed request.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { failAtExit, startChild, stopChild } from '../../../../bench/lib/children.mjs';

const RELAY = fileURLToPath(new URL('watching-relay.mjs', import.meta.url));
const VISITS = fileURLToPath(new URL('visits.lua', import.meta.url));
/** Maximum duration of a request, regardless of dying members. */
const TIMEOUT_SECS = 10;

export class WrkVisitors {
  #relay;
  #wrk;
  #report = null;

  static async start({ edge, host, connections, limitSecs }) {
    const visitors = new WrkVisitors();
    const relay = startChild({
      name: 'relay',
      command: process.execPath,
      args: [RELAY, String(edge.httpPort)],
      ipc: true,
    });
    const [{ port }] = await Promise.race([once(relay.process, 'message'), failAtExit(relay)]);
    visitors.#relay = relay;
    visitors.#wrk = startChild({
      name: 'wrk',
      command: 'wrk',
      args: [
        ...['--threads', '1', '--connections', String(connections), '--duration', `${limitSecs}s`],
        ...['--timeout', `${TIMEOUT_SECS}s`, '--script', VISITS, '--header', `Host: ${host}`],
        `http://127.0.0.1:${port}/`,
      ],
      onLine: (line) => visitors.#heard(line),
    });
    return visitors;
  }

  get isRunning() {
    return this.#wrk.exit === null;
  }

  /** Returns the relay's counts so far. */
  async counts() {
    const answer = once(this.#relay.process, 'message');
    this.#relay.process.send('counts?');
    const [{ counts }] = await Promise.race([answer, failAtExit(this.#relay)]);
    return counts;
  }

  /** Stops wrk, and returns its report together with the relay's counts of the same requests. */
  async stop() {
    // SIGINT makes wrk end in order and print its report.
    process.kill(this.#wrk.pid, 'SIGINT');
    await this.#wrk.exited;
    if (this.#report === null) throw new Error(`wrk said nothing that can be read: ${this.#wrk.output}`);
    const seen = await this.counts();
    await stopChild(this.#relay);
    return { wrk: this.#report, seen };
  }

  #heard(line) {
    if (line.startsWith('report ')) this.#report = JSON.parse(line.slice('report '.length));
  }
}
