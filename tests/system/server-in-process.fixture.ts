// Runs a tunnel-server inside the test process: the same composition, config file, data directory, signals and sockets as the executable,
// without the start of a process. A stack runs its platform and its edge inside the test process as well, with a database in the
// PostgreSQL server of the test run.
import { EventEmitter } from 'node:events';
import { Writable } from 'node:stream';
import { type Clock, systemClock } from '@tunnel/runtime';
import { type InProcessStreams, type Program, runInProcess } from '@tunnel/testkit';
import { loadConfig, loadStackConfig } from '../../apps/server/src/commands/shared.ts';
import { runPart } from '../../apps/server/src/parts/run-part.ts';
import { ServerParts } from '../../apps/server/src/parts/server-parts.ts';
import type { ServerHost } from '../../apps/server/src/process/host.ts';
import { reportProblem } from '../../apps/server/src/process/problem-report.ts';
import { type RunDeps, runServer } from '../../apps/server/src/run/run-server.ts';
import type { FromPart, ToPart } from '../../apps/server/src/stack/messages.ts';
import type { PartEnd, PartLaunch, PartRun } from '../../apps/server/src/stack/part-process.ts';
import { Stack } from '../../apps/server/src/stack/stack.ts';
import { rememberFiles } from './files-left.fixture.ts';
import { ProgramSockets } from './program-sockets.fixture.ts';

export interface ServerRun {
  readonly command: 'edge' | 'stack' | 'platform';
  readonly config: string;
  readonly dataDir: string;
  readonly workingDir: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Clock of the server. Defaults to the system clock. */
  readonly clock?: Clock;
  /** Makes the output of the server a terminal. `verbose` also sets the flag of the same name. */
  readonly terminal?: 'plain' | 'verbose';
}

type Running = Pick<ServerParts, 'stop' | 'stopNow'>;

export const runServerInProcess = (run: ServerRun): Program => {
  const { command, config: file, dataDir, env, clock = systemClock } = run;
  const sockets = new ProgramSockets();
  let running: Running | undefined;
  const main = async (streams: InProcessStreams): Promise<number> => {
    const host = hostOf(streams, run, clock);
    try {
      const flags = { config: file, dataDir };
      const config = command === 'stack' ? loadStackConfig(flags, env) : loadConfig(flags, env);
      const make = (deps: RunDeps): ServerParts | Stack => {
        const made =
          command === 'stack'
            ? new Stack(config, { ...deps, launch: (launch) => new PartInProcess(launch, host) })
            : new ServerParts(command, config, deps);
        running = made;
        return made;
      };
      return await runServer(command, config, host, { make, verbose: run.terminal === 'verbose' });
    } catch (error) {
      return reportProblem(error, streams.stderr, env);
    }
  };
  const endNow = ({ signals }: InProcessStreams): void => {
    // Stops without a drain, because the test has ended. The signal then lets the server clean up its data directory.
    void running?.stop({ drainMs: 0 });
    signals.emit('SIGTERM', 'SIGTERM');
  };
  const kill = async (streams: InProcessStreams, ended: Promise<unknown>): Promise<void> => {
    const leaveFiles = rememberFiles(dataDir);
    const cut = sockets.cut();
    running?.stopNow();
    endNow(streams);
    await Promise.all([cut, ended]);
    leaveFiles();
  };
  return runInProcess({
    describe: `tunnel-server ${command}`,
    main: (streams) => sockets.of(() => main(streams)),
    endNow,
    ...(command === 'edge' ? { kill } : {}),
  });
};

const hostOf = (streams: InProcessStreams, { workingDir, env, terminal }: ServerRun, clock: Clock): ServerHost => {
  const startedAt = clock.monotonic();
  const { stdout, stderr, signals } = streams;
  if (terminal !== undefined) for (const stream of [stdout, stderr]) Object.assign(stream, { isTTY: true });
  return {
    env: { ...env },
    stdout,
    stderr,
    signals,
    clock,
    workingDir,
    pid: process.pid,
    platform: process.platform,
    exit: streams.exit,
    parent: { connected: false, on: () => undefined },
    uptimeMs: () => clock.monotonic() - startedAt,
    // An uncaught error fails the test run, with a report of its origin.
    onUncaught: () => {},
    // The test process runs more than a single server, so memory of the start is not released.
    releaseStartMemory: () => {},
  };
};

/** A part of a stack inside the test process. Messages to and from its supervisor are copied, as over a channel between two processes. */
class PartInProcess implements PartRun {
  readonly ended: Promise<PartEnd>;
  readonly #channel = new EventEmitter();
  #isStarted = false;
  #end: (code: number) => void = () => {};

  constructor({ part, output, onMessage }: PartLaunch, stackHost: ServerHost) {
    const host: ServerHost = {
      ...stackHost,
      stdout: linesTo(output.out),
      stderr: linesTo(output.log),
      signals: new EventEmitter(),
      exit: (code) => this.#end(code),
      parent: {
        connected: true,
        on: (event: string, listener: (message: unknown) => void) => this.#channel.on(event, listener),
        send: (message: FromPart, done?: (error: Error | null) => void) => {
          setImmediate(() => onMessage(structuredClone(message)));
          done?.(null);
          return true;
        },
      } as ServerHost['parent'],
    };
    this.ended = new Promise((resolve) => {
      this.#end = (code) => resolve({ code, signal: null, output: '' });
      void runPart(part, host).then(this.#end);
    });
  }

  send(message: ToPart): void {
    if (message.kind === 'start') this.#isStarted = true;
    setImmediate(() => this.#channel.emit('message', structuredClone(message)));
  }

  /** Stops the part without a drain, because a part inside the test process cannot be killed. */
  kill(): void {
    if (this.#isStarted) this.send({ kind: 'stop', drainMs: 0 });
    else this.#end(1);
  }
}

const linesTo = (relay: { push(line: string): void }): Writable =>
  new Writable({
    decodeStrings: false,
    write: (text: string | Buffer, _encoding, done) => {
      relay.push(text.toString());
      done();
    },
  });
