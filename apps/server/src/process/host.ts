// What a server touches of the process that it runs in, so that a test can run the same server inside its own process.
import { type Clock, type LoggerOptions, releaseStartMemory, type SignalSource, systemClock } from '@tunnel/runtime';

type Output = NodeJS.WritableStream & { readonly isTTY?: boolean };

/** A part's end of the channel to its stack: Node's IPC channel, or a stand-in with the same calls. */
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
  /** Gives back the memory that only the start needed. */
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

/** The form of log lines, which go to stderr: as TUNNEL_LOG says, else for people at a terminal and JSON for everything that collects lines. */
export const logFormatOf = ({ env, stderr }: Pick<ServerHost, 'env' | 'stderr'>): LoggerOptions['format'] => {
  const wanted = env['TUNNEL_LOG'];
  if (wanted === 'human' || wanted === 'json') return wanted;
  return stderr.isTTY === true ? 'human' : 'json';
};

/** At a terminal a server shows its first screen, and details only when someone asks for them. Where lines are collected, nothing is left out. */
export const isBrief = ({ stdout, stderr }: Pick<ServerHost, 'stdout' | 'stderr'>, verbose: boolean): boolean =>
  !verbose && stdout.isTTY === true && stderr.isTTY === true;
