// One measurement: a fresh path on the ground, jobs of the load through it, and the meters on its processes.
import { childrenIn, failAtExit, removeFolder, stopChild, throwAwayFolder } from './children.mjs';
import { cpuSeconds, residentBytes } from './process-table.mjs';

const JOB_TIMEOUT_MS = 120_000;
const MB = 1e6;

export class Stage {
  /** Whether the scenario runs in the network it asked for. */
  ground;
  quick;
  /** How long a job is measured, where a scenario leaves that open. */
  seconds;
  /** Programs besides ours, by name. */
  tools;
  #path;
  #folder = throwAwayFolder();
  #way = null;

  constructor({ ground, path, quick, seconds, tools }) {
    this.ground = ground;
    this.quick = quick;
    this.seconds = seconds;
    this.tools = tools;
    this.#path = path;
  }

  async open(settings) {
    this.#way = await this.#path.start({ ...settings, ground: this.ground, folder: this.#folder });
  }

  get path() {
    return this.#path;
  }

  /** Whom the path has made to call it with; the platform's do. */
  get account() {
    return this.#way.account;
  }

  /** @returns {Promise<{ finish(): Promise<object> }>} once the job is ready: connected and warm */
  begin(job, parameters) {
    return this.#begin(this.ground.generator, job, parameters);
  }

  /** The same for the visitors who are beside those that are measured. */
  beginBeside(job, parameters = {}) {
    return this.#begin(this.ground.crowd, job, parameters);
  }

  async #begin(generator, job, parameters) {
    generator.send({ type: 'job', job, parameters, address: this.#way.address });
    await this.#unlessPathEnds(generator.next(JOB_TIMEOUT_MS));
    return {
      finish: async () => {
        generator.send({ type: 'go' });
        return (await this.#unlessPathEnds(generator.next(JOB_TIMEOUT_MS))).result;
      },
    };
  }

  /** The job's figures, and the CPU that the path used between ready and done. */
  async measure(job, parameters) {
    const begun = await this.begin(job, parameters);
    const before = this.#cpu();
    const beginUs = nowUs();
    const result = await begun.finish();
    const after = this.#cpu();
    const cpu = Object.fromEntries(Object.keys(before).map((role) => [role, after[role] - before[role]]));
    return { ...result, cpu: { ...cpu, both: sumOf(Object.values(cpu)) }, window: { beginUs, endUs: nowUs() } };
  }

  /** Resident memory in bytes, now and at its highest; null for a path without processes. */
  memory() {
    if (this.#way.processes.edge === undefined) return null;
    const edge = residentBytes(this.#way.processes.edge.pid);
    const client = residentBytes(this.#way.processes.client.pid);
    return { edge, client };
  }

  /** The figure that every scenario has. */
  peakMemory() {
    const memory = this.memory();
    return memory && { edgePeakMb: memory.edge.peak / MB, clientPeakMb: memory.client.peak / MB };
  }

  /** With SIGTERM the programs end in order and write what they have to, such as a profile. */
  async close(signal = this.#way?.stopSignal ?? 'SIGKILL') {
    await Promise.all(Object.values(this.#way?.processes ?? {}).map((child) => stopChild(child, signal)));
    await Promise.all(childrenIn(this.#folder).map((child) => stopChild(child)));
    removeFolder(this.#folder);
  }

  #cpu() {
    return Object.fromEntries(Object.entries(this.#way.processes).map(([role, { pid }]) => [role, cpuSeconds(pid)]));
  }

  #unlessPathEnds(promise) {
    return Promise.race([promise, ...Object.values(this.#way.processes).map(failAtExit)]);
  }
}

/** Of a path without processes there is none. */
const sumOf = (seconds) => (seconds.length === 0 ? Number.NaN : seconds.reduce((sum, value) => sum + value, 0));

/** The clock of CPU profiles. */
const nowUs = () => Number(process.hrtime.bigint() / 1000n);
