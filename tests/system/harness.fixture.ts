// Runs stacks, tunnel programs, services and folders for a test or a script, and removes all of them at the end. Servers and clients are
// executables, or run inside the test process. The harness decides for all of them, and a single call can override the choice with
// `programs`.
import { type Clock, systemClock } from '@tunnel/runtime';
import { claimPortBlock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { Stack, type StackOptions } from './stack.fixture.ts';
import { TunnelProgram, type TunnelRun } from './tunnel-program.fixture.ts';

interface Closable {
  close(): Promise<void>;
}

type PortTunnelOptions = Partial<Omit<TunnelRun, 'args'>> & { flags?: readonly string[]; server?: string };

export interface HarnessOptions {
  /** Runs servers and clients as executables. If false, they run inside the test process. */
  readonly programs?: boolean;
  /** Clock of all servers and clients inside the test process. Defaults to the system clock. */
  readonly clock?: Clock;
}

export class Harness {
  readonly #used: Closable[] = [];
  readonly #options: HarnessOptions;

  constructor(options: HarnessOptions = {}) {
    this.#options = options;
  }

  /** Clock of all servers and clients inside the test process. Tests measure time limits with the clock. */
  get clock(): Clock {
    return this.#options.clock ?? systemClock;
  }

  /** Registers a resource to be closed at the end, in reverse order. */
  use<T extends Closable>(thing: T): T {
    this.#used.push(thing);
    return thing;
  }

  async folder(): Promise<string> {
    const made: TemporaryDirectory = await temporaryDirectory();
    return this.use(made).path;
  }

  async stack(options: StackOptions = {}): Promise<Stack> {
    const { programs = true } = { ...this.#options, ...options };
    const ports = this.use(await claimPortBlock());
    const isWithout = programs || options.databaseUrl !== undefined || (options.command ?? 'edge') === 'edge';
    const database = isWithout ? {} : await this.#database();
    const stack = this.use(new Stack(await this.folder(), ports, { ...this.#options, ...database, ...options }));
    await stack.start();
    return stack;
  }

  /** Creates a database for a platform inside the test process. The database is removed with the harness. */
  async #database(): Promise<{ databaseUrl: string }> {
    const { createTestDatabase } = await import('../../apps/platform/src/db/test-database.fixture.ts');
    const { url } = this.use(await createTestDatabase());
    return { databaseUrl: url.reveal() };
  }

  /** Runs `tunnel` with exactly the given arguments. */
  async run(args: readonly string[], more: Partial<Omit<TunnelRun, 'args'>> = {}): Promise<TunnelProgram> {
    const home = more.home ?? (await this.folder());
    return this.use(await TunnelProgram.run({ ...this.#options, ...more, args, home }));
  }

  /** Runs `tunnel tcp PORT --json` at the given stack, with its admin token. */
  tcp(stack: Stack, localPort: number, options: PortTunnelOptions = {}): Promise<TunnelProgram> {
    return this.#portTunnel('tcp', stack, localPort, options);
  }

  /** Runs `tunnel udp PORT --json` at the given stack, with its admin token. */
  udp(stack: Stack, localPort: number, options: PortTunnelOptions = {}): Promise<TunnelProgram> {
    return this.#portTunnel('udp', stack, localPort, options);
  }

  /** Runs `tunnel tls PORT --json` at the given stack, with its admin token. The flags must name the host. */
  tls(stack: Stack, localPort: number, options: PortTunnelOptions = {}): Promise<TunnelProgram> {
    return this.#portTunnel('tls', stack, localPort, options);
  }

  #portTunnel(protocol: string, stack: Stack, localPort: number, options: PortTunnelOptions): Promise<TunnelProgram> {
    const { flags = [], server = stack.control, ...more } = options;
    const where = ['--server', server, '--token-file', stack.tokenFile];
    return this.run([protocol, String(localPort), '--json', ...where, ...flags], more);
  }

  async close(): Promise<void> {
    for (const thing of this.#used.splice(0).reverse()) await thing.close();
  }
}
