// A single measurement: a new path in the environment, load jobs through it, and the resource use of its processes.
import { childrenIn, failAtExit, removeFolder, stopChild, throwAwayFolder } from './children.mjs';
import { cpuSeconds, residentBytes } from './process-table.mjs';

const JOB_TIMEOUT_MS = 120_000;
const MB = 1e6;

export class Stage {
  /** The environment of the scenario: network, origin and load generator. */
  ground;
  quick;
  /** Duration of a job in seconds, if the scenario does not set one. */
  seconds;
  /** External programs by name. */
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
    this.#way = await this.#path.start({ ...settings, quick: this.quick, ground: this.ground, folder: this.#folder });
  }

  get path() {
    return this.#path;
  }

  /** The result of the path's start, for scenarios that measure the start itself or work with the path's processes. */
  get way() {
    return this.#way;
  }

  /** The account that the path created for API calls. Only platform paths create one. */
  get account() {
    return this.#way.account;
  }

  /** @returns {Promise<{ finish(): Promise<object> }>} when the job is ready, that is, connected and warm */
  begin(job, parameters) {
    return this.#begin(this.ground.generator, job, parameters);
  }

  /** Begins a job like `begin`, but for visitors that are not measured. */
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

  /** Runs a job and returns its figures, and the processor time that the path used between ready and done. */
  async measure(job, parameters) {
    const begun = await this.begin(job, parameters);
    const before = this.#cpu();
    const beginUs = nowUs();
    const result = await begun.finish();
    const after = this.#cpu();
    const cpu = Object.fromEntries(Object.keys(before).map((role) => [role, after[role] - before[role]]));
    return { ...result, cpu: { ...cpu, both: sumOf(Object.values(cpu)) }, window: { beginUs, endUs: nowUs() } };
  }

  /** Returns current and peak resident memory in bytes, or null for a path without processes. */
  memory() {
    if (this.#way.processes.edge === undefined) return null;
    const edge = residentBytes(this.#way.processes.edge.pid);
    const client = residentBytes(this.#way.processes.client.pid);
    return { edge, client };
  }

  /** Returns the peak memory figures that every scenario has. */
  peakMemory() {
    const memory = this.memory();
    return memory && { edgePeakMb: memory.edge.peak / MB, clientPeakMb: memory.client.peak / MB };
  }

  /** Stops the path's processes. With SIGTERM the programs end in order and write their files, for example a profile. */
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

/** Returns the sum, or NaN for a path without processes. */
const sumOf = (seconds) => (seconds.length === 0 ? Number.NaN : seconds.reduce((sum, value) => sum + value, 0));

/** Returns the time of the clock that CPU profiles use. */
const nowUs = () => Number(process.hrtime.bigint() / 1000n);
