// What a test or a script has running: stacks, tunnel programs, services, folders. All of it is gone when it is over.
// Servers and clients are executables, or run inside the test's process: a harness says which for all of them, and a call may say `programs`.
import { type Clock, systemClock } from '@tunnel/runtime';
import { claimPortBlock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { Stack, type StackOptions } from './stack.fixture.ts';
import { TunnelProgram, type TunnelRun } from './tunnel-program.fixture.ts';

interface Closable {
  close(): Promise<void>;
}

type PortTunnelOptions = Partial<Omit<TunnelRun, 'args'>> & { flags?: readonly string[]; server?: string };

export interface HarnessOptions {
  /** Executables; false: inside the test's process. */
  readonly programs?: boolean;
  /** The time of everything inside the test's process; the system's unless told. */
  readonly clock?: Clock;
}

export class Harness {
  readonly #used: Closable[] = [];
  readonly #options: HarnessOptions;

  constructor(options: HarnessOptions = {}) {
    this.#options = options;
  }

  /** The time of everything inside the test's process: a test measures its time limits on it. */
  get clock(): Clock {
    return this.#options.clock ?? systemClock;
  }

  /** Closed at the end, the latest first. */
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

  /** For a platform inside the test's process: it is gone with the harness. */
  async #database(): Promise<{ databaseUrl: string }> {
    const { createTestDatabase } = await import('../../apps/platform/src/db/test-database.fixture.ts');
    const { url } = this.use(await createTestDatabase());
    return { databaseUrl: url.reveal() };
  }

  /** `tunnel` with these arguments as they are. */
  async run(args: readonly string[], more: Partial<Omit<TunnelRun, 'args'>> = {}): Promise<TunnelProgram> {
    const home = more.home ?? (await this.folder());
    return this.use(await TunnelProgram.run({ ...this.#options, ...more, args, home }));
  }

  /** `tunnel tcp PORT --json` at this stack, with its admin token. */
  tcp(stack: Stack, localPort: number, options: PortTunnelOptions = {}): Promise<TunnelProgram> {
    return this.#portTunnel('tcp', stack, localPort, options);
  }

  /** `tunnel udp PORT --json`, likewise. */
  udp(stack: Stack, localPort: number, options: PortTunnelOptions = {}): Promise<TunnelProgram> {
    return this.#portTunnel('udp', stack, localPort, options);
  }

  /** `tunnel tls PORT --json`, likewise; its host is one of the flags. */
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
