// Access of a server to its process (environment, output, signals, exit), so that tests can run the same server within their own process.
import { type Clock, type LoggerOptions, releaseStartMemory, type SignalSource, systemClock } from '@tunnel/runtime';

type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

/** A part's end of the channel to its stack: the IPC channel of Node.js, or a test double with the same methods. */
export type ParentConnection = Pick<NodeJS.Process, 'connected' | 'send'> & {
  on(event: 'message', listener: (message: unknown) => void): unknown;
  on(event: 'disconnect', listener: () => void): unknown;
};

export interface ServerHost {
  readonly env: NodeJS.ProcessEnv;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly pid: number;
  readonly platform: NodeJS.Platform;
  readonly workingDir: string;
  readonly clock: Clock;
  readonly signals: SignalSource;
  readonly parent: ParentConnection;
  uptimeMs(): number;
  onUncaught(listener: (error: unknown) => void): void;
  /** Frees memory that was needed only during the start. */
  releaseStartMemory(): void;
  exit(code: number): void;
}

export const thisProcess = (): ServerHost => ({
  env: process.env,
  stdout: process.stdout,
  stderr: process.stderr,
  pid: process.pid,
  platform: process.platform,
  workingDir: process.cwd(),
  clock: systemClock,
  signals: process,
  parent: process,
  uptimeMs: () => process.uptime() * 1000,
  onUncaught: (listener) => void process.on('uncaughtException', listener),
  releaseStartMemory,
  exit: (code) => process.exit(code),
});

/**
 * Returns the format of log lines, which go to stderr: the format in TUNNEL_LOG, otherwise text for terminals, and JSON for log
 * collectors.
 */
export const logFormatOf = ({ env, stderr }: Pick<ServerHost, 'env' | 'stderr'>): LoggerOptions['format'] => {
  const wanted = env['TUNNEL_LOG'];
  if (wanted === 'human' || wanted === 'json') return wanted;
  return stderr.isTTY === true ? 'human' : 'json';
};

/**
 * Returns whether the ready message is short and details are hidden. True for a terminal without `--verbose`. If output is collected, all
 * lines are shown.
 */
export const isBrief = ({ stdout, stderr }: Pick<ServerHost, 'stdout' | 'stderr'>, verbose: boolean): boolean =>
  !verbose && stdout.isTTY === true && stderr.isTTY === true;
