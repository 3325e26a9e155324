// A `tunnel --json` client, as an executable or inside the test process, with the events that it prints.
import { join, resolve } from 'node:path';
import type { Clock } from '@tunnel/runtime';
import { eventually, type Program, type ProgramExit, spawnProgram } from '@tunnel/testkit';
import { ROOT } from '../repo/checkout.fixture.ts';
import { runClientInProcess } from './client-in-process.fixture.ts';
import { withoutOurEnvironment } from './stack.fixture.ts';

/** A program to test in place of the bundle: `TUNNEL_BIN=release/out/executables/tunnel-linux-x64 npx vitest …`. */
const OTHER_BIN = process.env['TUNNEL_BIN'];
export const TUNNEL_BIN = OTHER_BIN === undefined ? join(ROOT, 'apps/cli/bin/tunnel.mjs') : resolve(OTHER_BIN);

/** The command line of the program: a script needs Node.js, a single executable does not. */
export const commandOf = (args: readonly string[], bin = TUNNEL_BIN): { command: string; args: readonly string[] } =>
  /\.[cm]?js$/.test(bin) ? { command: process.execPath, args: [bin, ...args] } : { command: bin, args };
const EVENT_TIMEOUT_MS = 60_000;

export interface TunnelEvent {
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface ReadyEvent extends TunnelEvent {
  readonly event: 'ready';
  readonly public_url: string;
  readonly tunnel_id: string;
  readonly name: string;
  readonly assigned_port: number;
}

export interface TunnelRun {
  /** Home folder. Its folder `.tunnel` contains config.yml and the resume state. */
  readonly home: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Path of a copy of the program. */
  readonly bin?: string;
  /** The executable unless false. With TUNNEL_BIN only a client with a clock of the test runs inside the test's process. */
  readonly programs?: boolean;
  /** Clock of a client inside the test process. Defaults to the system clock. */
  readonly clock?: Clock;
}

export class TunnelProgram {
  readonly isInProcess: boolean;
  readonly #program: Program;

  constructor(program: Program, isInProcess: boolean) {
    this.#program = program;
    this.isInProcess = isInProcess;
  }

  static async run(run: TunnelRun): Promise<TunnelProgram> {
    const { home, args, env = {}, bin = TUNNEL_BIN, programs = true, clock } = run;
    if (!programs && (OTHER_BIN === undefined || clock !== undefined)) {
      const all = { ...withoutOurEnvironment(), ...env };
      const timed = clock === undefined ? {} : { clock };
      return new TunnelProgram(runClientInProcess({ args, home, env: all, ...timed }), true);
    }
    const program = await spawnProgram({
      ...commandOf(args, bin),
      env: { ...withoutOurEnvironment(), HOME: home, ...env },
      cwd: home,
    });
    return new TunnelProgram(program, false);
  }

  /** Pid of the executable. Throws for a client inside the test process; see Program. */
  get pid(): number {
    return this.#program.pid;
  }

  get stdout(): readonly string[] {
    return this.#program.stdout;
  }

  get stderr(): readonly string[] {
    return this.#program.stderr;
  }

  get exit(): ProgramExit | null {
    return this.#program.exit;
  }

  signal(signal: NodeJS.Signals): void {
    this.#program.signal(signal);
  }

  /** Writes to the standard input of the program. */
  write(text: string): void {
    this.#program.write(text);
  }

  /** Waits for the exit code, which is null for a program ended by a signal. */
  async exitCode(timeoutMs = EVENT_TIMEOUT_MS): Promise<number | null> {
    return (await this.#program.waitForExit({ timeoutMs })).code;
  }

  /** Kills the program with -9, and waits for its end. */
  async kill(): Promise<void> {
    this.#program.signal('SIGKILL');
    await this.#program.waitForExit();
  }

  events(kind: string): TunnelEvent[] {
    return this.#program.stdout
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as TunnelEvent)
      .filter(({ event }) => event === kind);
  }

  /** Waits for the first or nth event of a kind. */
  async waitFor(kind: string, { nth = 1, timeoutMs = EVENT_TIMEOUT_MS } = {}): Promise<TunnelEvent> {
    const found = await eventually(
      () => {
        const event = this.events(kind)[nth - 1];
        if (event === undefined && this.#program.exit === null) throw new Error(`no ${kind} #${nth}:\n${this.#said()}`);
        return event;
      },
      { timeoutMs },
    );
    if (found === undefined) throw new Error(`ended with ${this.exit?.code} before ${kind} #${nth}:\n${this.#said()}`);
    return found;
  }

  async ready(nth = 1): Promise<ReadyEvent> {
    return (await this.waitFor('ready', { nth })) as ReadyEvent;
  }

  close(): Promise<void> {
    return this.#program.close();
  }

  #said(): string {
    return [...this.#program.stdout, ...this.#program.stderr].map((line) => `  | ${line}`).join('\n');
  }
}
