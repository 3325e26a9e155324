// One measurement: a fresh path on the ground, jobs of the load through it, and the meters on its processes.
import { failAtExit, removeFolder, stopChild, throwAwayFolder } from './children.mjs';
import { cpuSeconds, residentBytes } from './process-table.mjs';

const JOB_TIMEOUT_MS = 120_000;
const MB = 1e6;

export class Stage {
  /** Whether the scenario runs in the network it asked for. */
  ground;
  quick;
  /** Programs besides ours, by name. */
  tools;
  #path;
  #folder = throwAwayFolder();
  #way = null;

  constructor({ ground, path, quick, tools }) {
    this.ground = ground;
    this.quick = quick;
    this.tools = tools;
    this.#path = path;
  }

  async open(settings) {
    this.#way = await this.#path.start({ ...settings, ground: this.ground, folder: this.#folder });
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
    const cpu = { edge: after.edge - before.edge, client: after.client - before.client };
    return { ...result, cpu: { ...cpu, both: cpu.edge + cpu.client }, window: { beginUs, endUs: nowUs() } };
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
  async close(signal = 'SIGKILL') {
    await Promise.all(Object.values(this.#way?.processes ?? {}).map((child) => stopChild(child, signal)));
    removeFolder(this.#folder);
  }

  #cpu() {
    const { edge, client } = this.#way.processes;
    return { edge: edge ? cpuSeconds(edge.pid) : Number.NaN, client: client ? cpuSeconds(client.pid) : Number.NaN };
  }

  #unlessPathEnds(promise) {
    return Promise.race([promise, ...Object.values(this.#way.processes).map(failAtExit)]);
  }
}

/** The clock of CPU profiles. */
const nowUs = () => Number(process.hrtime.bigint() / 1000n);
