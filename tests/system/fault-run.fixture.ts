// Two tenants with visitors at a steady rate, while parts of the stack and clients are killed with -9. A test kills a few times, a script
// many times. The run measures how long visitors of each tenant got no response, how long the ports were closed, and how much was billed.

import { statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { KEY_COPIES_WAIT_MS } from '../../apps/edge/src/backend/key-copies.ts';
import { JOURNAL_DELIVER_MS } from '../../apps/edge/src/backend/usage-log.ts';
import { embeddedUrl } from '../../apps/server/src/embedded-postgres/connection.ts';
import { ask, serversOn } from './embedded-database.fixture.ts';
import { Harness } from './harness.fixture.ts';
import { partsOf } from './kill-trial.fixture.ts';
import { signUpPayer } from './payer.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

export const VICTIMS = ['edge', 'platform', 'database', 'client'] as const;
export type Victim = (typeof VICTIMS)[number];

const REQUESTS_PER_SECOND = 40;
const TENANTS = 2;
const BODY = Buffer.alloc(1000, 'f');
/** Time in milliseconds after which a visitor without a response gives up. */
const PATIENCE_MS = 20_000;
/** Maximum duration of usage that a killed edge has not written to disk. Usage is written every 100 ms. */
const UNBILLED_MS = 100;
/** Maximum time in milliseconds until the edge notices that a client was killed. */
const NOTICED_MS = 100;
/** Time limit for usage to arrive at the platform, even on a busy machine. */
const SETTLED = { timeoutMs: 30_000, intervalMs: 250 };
const SOON = { timeoutMs: 60_000, intervalMs: 10 };

/** A single request of a visitor. */
interface Visit {
  readonly from: number;
  to: number;
  /** Status of a complete response, or code of the error. */
  outcome: number | string;
}

interface Kill {
  readonly at: number;
  readonly victim: Victim;
}

export interface TenantResult {
  /** Number of complete responses received by visitors. */
  readonly whole: number;
  /** Number of requests received by the service. */
  readonly served: number;
  readonly billed: number;
  /** Bounds of a correct bill, which misses at most 100 ms per kill and contains no request twice. */
  readonly least: number;
  readonly most: number;
  /** Longest time without a complete response, and the parts killed during that time. */
  readonly gapMs: number;
  readonly killed: readonly Victim[];
}

export class FaultRun {
  readonly stack: Stack;
  readonly #harness: Harness;
  readonly #tenants: readonly Tenant[];
  readonly #kills: Kill[] = [];
  /** Time of the latest kill of the edge, in milliseconds since the epoch like file times. */
  #edgeKilledAt = 0;

  private constructor(harness: Harness, stack: Stack, tenants: readonly Tenant[]) {
    this.#harness = harness;
    this.stack = stack;
    this.#tenants = tenants;
  }

  static async open(): Promise<FaultRun> {
    const harness = new Harness();
    try {
      const stack = await harness.stack({ command: 'stack', fixedPorts: true });
      const tenants: Tenant[] = [];
      for (let index = 0; index < TENANTS; index += 1) tenants.push(await Tenant.open(harness, stack, index));
      const run = new FaultRun(harness, stack, tenants);
      await run.serves();
      return run;
    } catch (error) {
      await harness.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    await Promise.all(this.#tenants.map((tenant) => tenant.leave()));
    await this.#harness.close();
  }

  /** Waits until visitors of every tenant have received a complete response from now on. */
  async serves(): Promise<void> {
    const from = performance.now();
    await eventually(() => {
      for (const tenant of this.#tenants) if (tenant.servedAfter(from) === null) throw new Error(tenant.said());
    }, SOON);
  }

  /**
   * Kills a part or a client with -9, and returns the time of the kill. Waits first if the part is not running. `chance` in [0, 1)
   * selects the client.
   */
  async kill(victim: Victim, chance = 0): Promise<number> {
    const tenant = this.#tenants[Math.floor(chance * this.#tenants.length)];
    if (victim === 'client') {
      const at = performance.now();
      this.#kills.push({ at, victim });
      await tenant?.killClient();
      return at;
    }
    const pid = await eventually(() => this.#pidOf(victim), SOON);
    const at = performance.now();
    process.kill(pid, 'SIGKILL');
    this.#kills.push({ at, victim });
    return at;
  }

  /**
   * Waits until the edge has written the keys of both tenants to disk, for a start without the platform. The edge waits two seconds for
   * further keys before it writes.
   */
  async keysKept(): Promise<void> {
    await this.serves();
    const servedAt = Date.now();
    await eventually(() => {
      const { mtimeMs } = statSync(join(this.stack.dataDir, 'edge-known-keys.jwe'));
      const isLast = Date.now() - servedAt > KEY_COPIES_WAIT_MS + 500;
      if (!isLast || mtimeMs < this.#edgeKilledAt) throw new Error('the keys are not on the disk yet');
    }, SOON);
  }

  /** Makes the platform accept connections without responding, until the returned function is called. */
  hangPlatform(): () => void {
    const pid = this.#pidOf('platform');
    process.kill(pid, 'SIGSTOP');
    return () => void process.kill(pid, 'SIGCONT');
  }

  /** Kills the edge. Returns how long its ports refused connections, and how long until visitors of both tenants were served again. */
  async killEdge(): Promise<{ readonly refusedMs: number; readonly servedMs: number }> {
    const { controlPort } = this.stack;
    this.#edgeKilledAt = Date.now();
    const at = await this.kill('edge');
    let openMs = 0;
    await eventually(async () => {
      await reach(controlPort);
      openMs = performance.now() - at;
    }, SOON);
    const served = await eventually(
      () =>
        this.#tenants.map((tenant) => {
          const first = tenant.servedAfter(at);
          if (first === null) throw new Error(tenant.said());
          return first - at;
        }),
      SOON,
    );
    const refused = this.#tenants.map((tenant) => tenant.refusedUntil(at) - at);
    return { refusedMs: Math.max(openMs, ...refused), servedMs: Math.max(...served) };
  }

  /** Stops the visitors, and returns the result for each tenant. */
  async results(): Promise<TenantResult[]> {
    await Promise.all(this.#tenants.map((tenant) => tenant.leave()));
    return Promise.all(this.#tenants.map((tenant) => tenant.result(this.#kills)));
  }

  #pidOf(victim: Exclude<Victim, 'client'>): number {
    const { dataDir } = this.stack;
    const pid =
      victim === 'database' ? serversOn(dataDir)[0] : partsOf(dataDir).find(({ name }) => name === victim)?.pid;
    if (pid === undefined) throw new Error(`${victim} is not running`);
    return pid;
  }
}

class Tenant {
  readonly #stack: Stack;
  readonly #accountId: string;
  readonly #run: () => Promise<TunnelProgram>;
  readonly #served: () => number;
  readonly #host: string;
  readonly #port: number;
  readonly #visits: Visit[] = [];
  readonly #open = new Set<Promise<void>>();
  readonly #ticking: NodeJS.Timeout;
  #client: TunnelProgram;

  private constructor(stack: Stack, opened: OpenedTenant) {
    this.#stack = stack;
    this.#accountId = opened.accountId;
    this.#run = opened.run;
    this.#served = opened.served;
    this.#client = opened.client;
    this.#host = opened.url.host;
    this.#port = Number(opened.url.port);
    // Visits run independently, so that a waiting visitor does not delay the next visit.
    this.#ticking = setInterval(() => {
      const visit = this.#visit();
      this.#open.add(visit);
      void visit.then(() => this.#open.delete(visit));
    }, 1000 / REQUESTS_PER_SECOND);
  }

  static async open(harness: Harness, stack: Stack, index: number): Promise<Tenant> {
    let requests = 0;
    const service = createServer((_, response) => {
      requests += 1;
      response.end(BODY);
    });
    await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
    harness.use({
      close: async () => {
        service.close();
        service.closeAllConnections();
      },
    });
    const payer = await signUpPayer(stack);
    const { token } = await payer.client(stack).createKey({ label: 'service' });
    const home = await harness.folder();
    const { port } = service.address() as AddressInfo;
    const args = [
      'http',
      String(port),
      '--subdomain',
      `tenant-${index}`,
      '--json',
      '--server',
      stack.control,
      '--wait',
    ];
    const run = (): Promise<TunnelProgram> => harness.run(args, { home, env: { TUNNEL_API_KEY: token } });
    const client = await run();
    const { public_url } = await client.ready();
    const { accountId } = payer;
    return new Tenant(stack, { accountId, run, client, url: new URL(public_url), served: () => requests });
  }

  /** Kills the client and restarts it at once, as a service manager would. */
  async killClient(): Promise<void> {
    await this.#client.kill();
    this.#client = await this.#run();
  }

  async leave(): Promise<void> {
    clearInterval(this.#ticking);
    await Promise.all(this.#open);
  }

  /** Returns the end of the first complete visit that began after `at`, or null if no visit has succeeded since. */
  servedAfter(at: number): number | null {
    return this.#visits.find(({ from, outcome }) => from >= at && outcome === 200)?.to ?? null;
  }

  /** Returns the start of the last visit that was refused after `at`, or `at` if no visit was refused. */
  refusedUntil(at: number): number {
    return this.#visits.findLast(({ from, outcome }) => from >= at && outcome === 'ECONNREFUSED')?.from ?? at;
  }

  async result(kills: readonly Kill[]): Promise<TenantResult> {
    const whole = this.#visits.filter(({ outcome }) => outcome === 200);
    const of = (...victims: readonly Victim[]) => kills.filter(({ victim }) => victims.includes(victim));
    // Visits that a killed edge had not written to disk.
    const unwritten = of('edge').map(
      ({ at }) => this.#visits.filter(({ from, to }) => to >= at - UNBILLED_MS && from <= at).length,
    );
    // Requests that the edge counted and passed to a client after the client's death, so that the service never received them.
    const unheard = of('edge', 'client').map(
      ({ at }) =>
        this.#visits.filter(
          ({ from, to, outcome }) =>
            outcome !== 200 && outcome !== 'ECONNREFUSED' && to >= at && from <= at + NOTICED_MS,
        ).length,
    );
    const least = whole.length - sum(unwritten);
    const most = this.#served() + sum(unheard);
    const since = performance.now();
    let billed = 0;
    // The edge reports usage to the platform every five seconds. A correct bill no longer changes after that time; only double billing
    // would change it.
    await eventually(async () => {
      billed = await this.#billed();
      const isOver = performance.now() - since > JOURNAL_DELIVER_MS + 1500;
      if (billed < (isOver ? least : whole.length)) throw new Error('usage is still on its way');
    }, SETTLED).catch(() => {});
    return { whole: whole.length, served: this.#served(), billed, least, most, ...longestGap(whole, kills) };
  }

  said(): string {
    const outcomes = this.#visits.slice(-5).map(({ outcome }) => outcome);
    const { stderr } = this.#stack.program;
    return [`visitors got ${outcomes.join(', ')}`, ...this.#client.stdout.slice(-3), ...stderr.slice(-5)].join('\n');
  }

  async #billed(): Promise<number> {
    const url = embeddedUrl(this.#stack.dataDir);
    if (url === null) return 0;
    const query = `select coalesce(sum(requests), 0) from usage_daily where user_id = '${this.#accountId}'`;
    return Number(await ask(url, query));
  }

  #visit(): Promise<void> {
    const visit: Visit = { from: performance.now(), to: Number.POSITIVE_INFINITY, outcome: 'open' };
    this.#visits.push(visit);
    return new Promise((resolve) => {
      const end = (outcome: Visit['outcome']): void => {
        if (visit.outcome !== 'open') return;
        visit.to = performance.now();
        visit.outcome = outcome;
        resolve();
      };
      const where = { host: '127.0.0.1', port: this.#port, headers: { host: this.#host }, agent: false };
      const asked = request({ ...where, timeout: PATIENCE_MS }, (response) => {
        let bytes = 0;
        response.on('data', (piece: Buffer) => (bytes += piece.length));
        response.on('end', () => {
          const isCut = response.statusCode === 200 && bytes !== BODY.length;
          end(isCut ? 'cut' : (response.statusCode ?? 0));
        });
        response.on('error', () => end('cut'));
      });
      asked.on('timeout', () => asked.destroy());
      asked.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
      asked.on('close', () => end('closed'));
      asked.end();
    });
  }
}

interface OpenedTenant {
  readonly accountId: string;
  readonly run: () => Promise<TunnelProgram>;
  readonly client: TunnelProgram;
  readonly url: URL;
  readonly served: () => number;
}

const longestGap = (whole: readonly Visit[], kills: readonly Kill[]): Pick<TenantResult, 'gapMs' | 'killed'> => {
  const ends = whole.map(({ to }) => to).sort((a, b) => a - b);
  let gapMs = 0;
  let from = 0;
  for (const [index, at] of ends.entries()) {
    const before = ends[index - 1] ?? at;
    if (at - before > gapMs) [gapMs, from] = [at - before, before];
  }
  const inGap = kills.filter(({ at }) => at >= from - 100 && at <= from + gapMs);
  return { gapMs, killed: inGap.map(({ victim }) => victim) };
};

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

const reach = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.on('error', reject);
  });
