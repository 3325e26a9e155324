// A trial that kills the parts of a stack with -9 while visitors use tunnels of a paying account. A test kills a few times, a script many
// times.
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { eventually } from '@tunnel/testkit';
import { embeddedUrl } from '../../apps/server/src/embedded-postgres/connection.ts';
import { countedEcho } from './counted-service.fixture.ts';
import { ask, commandOf, processesOf, serversOn } from './embedded-database.fixture.ts';
import { Harness } from './harness.fixture.ts';
import { type Payer, reportedBytes, signUpPayer } from './payer.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import type { TunnelProgram } from './tunnel-program.fixture.ts';

export const PARTS = ['edge', 'platform', 'database', 'parent'] as const;
export type Part = (typeof PARTS)[number];

const CLIENTS = 3;
const SIZE = 20_000;
/** Pause between two visits of a visitor in milliseconds, so that the load does not saturate the machine. */
const PAUSE_MS = 10;
const SOON = { timeoutMs: 60_000, intervalMs: 10 };
/** Time limit for billing. The payment processor gets usage at most a minute after its event was created. */
const IN_THE_END = { timeoutMs: 180_000, intervalMs: 500 };

/** Total of bytes received at either end of a tunnel by a given time. The edge had carried them by then. */
interface Arrival {
  readonly at: number;
  readonly total: number;
}

export class KillTrial {
  readonly stack: Stack;
  readonly #harness: Harness;
  readonly #payer: Payer;
  readonly #ports: readonly number[];
  readonly #clients: readonly TunnelProgram[];
  readonly #echo: Awaited<ReturnType<typeof countedEcho>>;
  readonly #visiting: readonly Promise<void>[];
  readonly #arrivals: Arrival[] = [];
  #isOver = false;
  #visits = 0;
  #sent = 0;
  #heard = 0;

  private constructor(harness: Harness, stack: Stack, payer: Payer, load: Load) {
    this.#harness = harness;
    this.stack = stack;
    this.#payer = payer;
    this.#ports = load.ports;
    this.#clients = load.clients;
    this.#echo = load.echo;
    this.#visiting = load.ports.map((port) => this.#visitAgain(port));
  }

  static async open(): Promise<KillTrial> {
    const harness = new Harness();
    // With fixed ports the stack listens on the same ports again, even after a kill of all parts.
    const stack = await harness.stack({ command: 'stack', fixedPorts: true });
    const payer = await signUpPayer(stack);
    return new KillTrial(harness, stack, payer, await openLoad(harness, stack, payer));
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#visiting);
    await this.#harness.close();
  }

  /** Kills a part, and returns the milliseconds until the part responded again. By then each client has reconnected and serves visitors. */
  async kill(part: Part): Promise<number> {
    await this.#served();
    const killed = this.pidOf(part);
    const killedAt = performance.now();
    await this.#killPart(part);
    await eventually(() => this.#answers(part, killed), SOON);
    const backMs = performance.now() - killedAt;
    await this.#served();
    return backMs;
  }

  pidOf(part: Part): number {
    if (part === 'parent') return this.stack.program.pid;
    if (part !== 'database') return pidOfPart(this.stack.dataDir, part);
    const [pid] = serversOn(this.stack.dataDir);
    if (pid === undefined) throw new Error('no database is running');
    return pid;
  }

  async #killPart(part: Part): Promise<void> {
    if (part !== 'parent') {
      process.kill(this.pidOf(part), 'SIGKILL');
      return;
    }
    await this.stack.kill();
    // The restart follows at once. The start waits for remaining processes, so no port is taken.
    await this.stack.start();
  }

  async #answers(part: Part, killed: number): Promise<void> {
    const { run, controlPort } = this.stack;
    if (this.pidOf(part) === killed) throw new Error(`${part} is not back`);
    if (part !== 'platform') await reach(controlPort);
    const health = await fetch(`${run.platform_url}${part === 'edge' ? '/health' : '/health/db'}`);
    if (health.status !== 200) throw new Error(`the platform answers ${health.status}`);
  }

  /** Waits until each visitor has completed a visit from now on. */
  async #served(): Promise<void> {
    const wanted = this.#visits + 4 * this.#ports.length;
    const seen = new Set<number>();
    const onVisit = (port: number): void => void seen.add(port);
    this.#onVisit.add(onVisit);
    try {
      await eventually(() => {
        if (seen.size < this.#ports.length || this.#visits < wanted) throw new Error(`no visits: ${this.#said()}`);
      }, SOON);
    } finally {
      this.#onVisit.delete(onVisit);
    }
  }

  readonly #onVisit = new Set<(port: number) => void>();

  async #visitAgain(port: number): Promise<void> {
    while (!this.#isOver) {
      if (await this.#visit(port)) {
        this.#visits += 1;
        for (const listener of this.#onVisit) listener(port);
      }
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  /** Makes a visit, and returns true if the response was complete. The bytes of an incomplete visit count as carried as well. */
  #visit(port: number): Promise<boolean> {
    const visitor = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
    let heard = 0;
    visitor.on('data', (piece: Buffer) => {
      heard += piece.length;
      this.#heard += piece.length;
      this.#arrivals.push({ at: performance.now(), total: this.#heard });
    });
    visitor.on('error', () => {});
    // A refused visitor has sent no bytes.
    visitor.on('connect', () => {
      this.#sent += SIZE;
    });
    visitor.end(Buffer.alloc(SIZE, 'v'));
    return new Promise((resolve) => {
      visitor.on('end', () => resolve(heard === SIZE));
      visitor.on('close', () => resolve(false));
    });
  }

  /** Stops the visitors, and returns the charges of the account with the bounds of a correct bill. */
  async totals(kills: number, unbilledMs: number): Promise<Totals> {
    this.#isOver = true;
    await Promise.all(this.#visiting);
    // The service receives the incoming bytes that the edge carried, and the visitors the outgoing bytes. Both sides may have sent more.
    const carried = this.#echo.bytesRead + this.#heard;
    const least = carried - kills * 2 * mostWithin(this.#arrivals, unbilledMs);
    const most = this.#sent + this.#echo.bytesWritten;
    let charged = 0;
    await eventually(async () => {
      charged = await this.#charged();
      if (charged < least) throw new Error(`${charged} of at least ${least} bytes were charged`);
    }, SOON).catch(() => {});
    // Late records may still be in transit, so a second query takes the larger value.
    return { charged: Math.max(charged, await this.#charged()), least, most, carried };
  }

  async #charged(): Promise<number> {
    const url = embeddedUrl(this.stack.dataDir);
    return url === null ? 0 : Number(await ask(url, 'select coalesce(sum(bytes), 0) from usage_daily'));
  }

  /** Returns charged and reported bytes once the payment processor has received all usage, or after three minutes. */
  async billed(): Promise<{ readonly charged: number; readonly reported: number }> {
    let charged = 0;
    let reported = 0;
    await eventually(async () => {
      charged = await this.#charged();
      reported = (await reportedBytes(this.stack)).get(this.#payer.customerId) ?? 0;
      if (reported !== charged) throw new Error('not all is reported');
    }, IN_THE_END).catch(() => {});
    return { charged, reported };
  }

  /** Stops the stack with a signal, and returns the processes and open ports that remain. */
  async stop(): Promise<{ readonly processes: readonly number[]; readonly ports: readonly number[] }> {
    const { dataDir, run, controlPort } = this.stack;
    const ports = [
      controlPort,
      Number(new URL(run.platform_url).port),
      Number(new URL(run.api_url).port),
      ...this.#ports,
    ];
    await this.stack.stop();
    const open = await Promise.all(
      ports.map((port) =>
        reach(port).then(
          () => [port],
          () => [],
        ),
      ),
    );
    return { processes: leftOf(dataDir), ports: open.flat() };
  }

  /** Kills the parent with -9 without a restart, and returns the milliseconds until all processes of the stack have ended. */
  async killForGood(): Promise<number> {
    const { dataDir } = this.stack;
    const killedAt = performance.now();
    await this.stack.kill();
    await eventually(() => {
      if (leftOf(dataDir).length > 0) throw new Error(`left: ${leftOf(dataDir).join(', ')}`);
    }, SOON);
    return performance.now() - killedAt;
  }

  #said(): string {
    const { stdout, stderr } = this.stack.program;
    const clients = this.#clients.flatMap(({ stdout: lines }) => lines.slice(-3));
    return [...stdout.slice(-5), ...stderr.slice(-10), ...clients].join('\n');
  }
}

interface Totals {
  readonly charged: number;
  readonly least: number;
  readonly most: number;
  readonly carried: number;
}

interface Load {
  readonly echo: Awaited<ReturnType<typeof countedEcho>>;
  readonly clients: readonly TunnelProgram[];
  readonly ports: readonly number[];
}

const openLoad = async (harness: Harness, stack: Stack, payer: Payer): Promise<Load> => {
  const echo = harness.use(await countedEcho());
  const { token } = await payer.client(stack).createKey({ label: 'service' });
  const args = ['tcp', String(echo.port), '--json', '--server', stack.control];
  const clients = await Promise.all(
    Array.from({ length: CLIENTS }, () => harness.run(args, { env: { TUNNEL_API_KEY: token } })),
  );
  const ready = await Promise.all(clients.map((client) => client.ready()));
  return { echo, clients, ports: ready.map(({ assigned_port }) => assigned_port) };
};

/** Returns the maximum number of bytes received within any interval of the given milliseconds. */
const mostWithin = (arrivals: readonly Arrival[], ms: number): number => {
  let most = 0;
  let first = 0;
  for (const { at, total } of arrivals) {
    while (at - (arrivals[first]?.at ?? at) > ms) first += 1;
    most = Math.max(most, total - (arrivals[first - 1]?.total ?? 0));
  }
  return most;
};

const reach = (port: number): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port });
    socket.on('connect', () => {
      socket.destroy();
      resolve();
    });
    socket.on('error', reject);
  });

/** Returns platform and edge of the stack on the data directory, found in the process list. */
export const partsOf = (dataDir: string): { readonly name: string; readonly pid: number }[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const words = commandOf(pid).split('\0');
      const at = words.indexOf('--supervised');
      return at > 0 && words.includes(dataDir) ? [{ name: words[at - 1] ?? '', pid: Number(pid) }] : [];
    });

/** Returns the pid of a part, and throws if no such process runs. A default of 0 would make a kill hit the process group of the test. */
export const pidOfPart = (dataDir: string, part: string): number => {
  const found = partsOf(dataDir).find(({ name }) => name === part);
  if (found === undefined) throw new Error(`no process of the part ${part} is running`);
  return found.pid;
};

const leftOf = (dataDir: string): number[] => [...partsOf(dataDir).map(({ pid }) => pid), ...processesOf(dataDir)];
