// One run of a program that speaks over stdin and stdout: its messages, its words on stderr, and its end. It ends with us: when this process
// dies its stdin is over, and a watch ends what is left of its process group.
import { type ChildProcess as NodeChild, spawn } from 'node:child_process';
import { isJSONRPCResponse, type JSONRPCMessage, type RequestId, type Transport } from '@modelcontextprotocol/client';
import type { Clock, Timer } from '@tunnel/runtime';
import { BRIDGE_LIMITS } from './bridge-limits.ts';
import { GroupWatch, STOP_STEP_MS } from './group-watch.ts';
import { LineReader } from './line-reader.ts';

/** time after the program has ended for its last output, or for a pipe that a program of its own holds */
const DRAIN_AFTER_EXIT_MS = 500;
/** a program that has closed its stdout or stdin and does not end: then it is ended, and started again */
export const CLOSED_PIPE_MS = 1000;
/** a line of its stderr; the rest of it is left out */
const STDERR_LINE_MAX_BYTES = 4 * 1024;
/** lines of its stderr that are passed on within a second; more are counted */
const STDERR_LINES_PER_SECOND = 100;
/** bytes that wait for the server to read them: as many messages as it has calls; then it counts as stuck and is started again */
const UNREAD_MAX_BYTES = 33 * 1024 * 1024;

/** How the program is started. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface ChildProcessOptions {
  readonly clock: Clock;
  /** A line of its stderr. */
  readonly onStderr: (line: string) => void;
}

/** -32603 of JSON-RPC: what a caller is told whose answer cannot be passed on. */
export const INTERNAL_ERROR = -32603;
const hasGroups = process.platform !== 'win32';

/** In JSON they are characters like any other; servers that read by Node's readline take them for the end of a line. */
const lineOf = (message: JSONRPCMessage): string =>
  JSON.stringify(message).replace(/[\u2028\u2029]/g, (separator) => (separator === '\u2028' ? '\\u2028' : '\\u2029'));

/** `pid` and `stderr` are what the SDK knows a transport over stdio by: silence to its first question then means an older server. */
export class ChildProcess implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly stderr = null;
  readonly #server: ServerCommand;
  readonly #options: ChildProcessOptions;
  readonly #lines: LineReader;
  /** Read and not told yet: at most what one chunk held. */
  #unread: JSONRPCMessage[] = [];
  #isTelling = false;
  #child: NodeChild | null = null;
  #watch: GroupWatch | null = null;
  #isOver = false;
  #isClosing = false;
  /** We have ended it, since nobody can talk to it any more. */
  #isStuck = false;
  #endedByItself = false;
  #end = 'not started';
  #timer: Timer | null = null;
  readonly #over: Promise<void>;
  #settleOver: () => void = () => {};

  constructor(server: ServerCommand, options: ChildProcessOptions) {
    this.#server = server;
    this.#options = options;
    this.#lines = new LineReader(BRIDGE_LIMITS.MESSAGE_MAX_BYTES, {
      onLine: (line) => this.#receive(line),
      onTooLong: (id) => this.#refuseAnswer(id, `larger than ${BRIDGE_LIMITS.MESSAGE_MAX_BYTES} bytes`),
    });
    this.#over = new Promise((resolve) => {
      this.#settleOver = resolve;
    });
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** Why it is over, for people: `exited with code 1`. */
  get end(): string {
    return this.#end;
  }

  /** Not because we have told it to; also when there is no such program. */
  get endedByItself(): boolean {
    return this.#endedByItself;
  }

  start(): Promise<void> {
    const { command, args, cwd, env } = this.#server;
    return new Promise((resolve, reject) => {
      // A group of its own: Ctrl-C at the terminal is for us, who then end it in order.
      const child = spawn(command, [...args], {
        cwd,
        env: { ...env },
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: hasGroups,
        windowsHide: true,
      });
      this.#child = child;
      child.once('spawn', () => {
        if (hasGroups && child.pid !== undefined) this.#watch = new GroupWatch(child.pid);
        resolve();
      });
      child.once('error', (error: NodeJS.ErrnoException) => {
        // Also told when a signal could not be sent; then it goes on.
        if (child.pid !== undefined) return;
        this.#endedByItself = true;
        this.#finish(startFailure(command, error));
        reject(error);
      });
      child.once('exit', (code, signal) => this.#onExit(code, signal));
      child.once('close', () => this.#finish(this.#end));
      this.#listen(child);
    });
  }

  #listen(child: NodeChild): void {
    child.stdout?.on('data', (chunk: Buffer) => {
      this.#lines.push(chunk);
      this.#tell();
    });
    child.stdout?.on('error', () => {});
    child.stdout?.once('end', () => this.#onPipeClosed('stdout'));
    child.stdin?.on('error', () => this.#onPipeClosed('stdin'));
    const errors = new StderrLines(this.#options);
    child.stderr?.on('data', (chunk: Buffer) => errors.push(chunk));
    child.stderr?.once('end', () => errors.end());
    child.stderr?.on('error', () => {});
  }

  /** Mostly its end, which comes at once. */
  #onPipeClosed(pipe: 'stdin' | 'stdout'): void {
    if (this.#isOver || this.#timer !== null) return;
    const giveUp = (): void => this.#giveUp(`the server closed ${pipe}`);
    this.#timer = this.#options.clock.setTimeout(giveUp, CLOSED_PIPE_MS);
  }

  #giveUp(end: string): void {
    this.#isStuck = true;
    this.#end = end;
    this.#kill('SIGKILL');
  }

  /** What it has left on its pipes is still read; programs of its own that hold them open are ended. */
  #onExit(code: number | null, signal: NodeJS.Signals | null): void {
    this.#endedByItself = !this.#isClosing;
    if (!this.#isStuck) this.#end = signal === null ? `exited with code ${code}` : `killed by ${signal}`;
    this.#kill('SIGKILL');
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimeout(() => this.#finish(this.#end), DRAIN_AFTER_EXIT_MS);
  }

  #finish(end: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#end = end;
    this.#timer?.cancel();
    this.#watch?.end();
    this.#lines.end();
    for (const message of this.#unread.splice(0)) this.onmessage?.(message);
    for (const stream of [this.#child?.stdin, this.#child?.stdout, this.#child?.stderr]) stream?.destroy();
    this.#settleOver();
    this.onclose?.();
  }

  /** Settles when it is gone: the end of its stdin, then SIGTERM, then SIGKILL. */
  close(): Promise<void> {
    const child = this.#child;
    this.#isClosing = true;
    if (child === null || this.#isOver) return Promise.resolve();
    child.stdin?.end();
    if (child.exitCode === null && child.signalCode === null && this.#timer === null) {
      this.#timer = this.#options.clock.setTimeout(() => {
        this.#kill('SIGTERM');
        this.#timer = this.#options.clock.setTimeout(() => this.#kill('SIGKILL'), STOP_STEP_MS);
      }, STOP_STEP_MS);
    }
    return this.#over;
  }

  #kill(signal: NodeJS.Signals): void {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    try {
      if (hasGroups) process.kill(-pid, signal);
      else this.#child?.kill(signal);
    } catch {
      // Nobody is left in the group.
    }
  }

  send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#child?.stdin;
    if (this.#isOver || stdin === undefined || stdin === null || !stdin.writable) {
      return Promise.reject(new Error(`the MCP server is not running: ${this.#end}`));
    }
    stdin.write(`${lineOf(message)}\n`);
    if (stdin.writableLength > UNREAD_MAX_BYTES) {
      this.#giveUp('the server stopped reading stdin');
    }
    return Promise.resolve();
  }

  #receive(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      // Lines of logging where the protocol should be are common, and harm nobody.
      this.onerror?.(new Error(`stdout contains a line that is not a JSON-RPC message: ${line.slice(0, 200)}`));
      return;
    }
    if (typeof message !== 'object' || message === null || Array.isArray(message)) return;
    if ('id' in message && isRequestId(message.id) && !('method' in message) && !isJSONRPCResponse(message)) {
      return this.#refuseAnswer(message.id, 'not valid JSON-RPC');
    }
    this.#unread.push(message as JSONRPCMessage);
  }

  /**
   * One after the other. The SDK takes an answer at once and a notification a moment later: progress that came just before the answer would
   * be lost, so each notification has a turn of its own. Also the last that was read: what comes while the pipe is paused is given out by
   * `resume` before that moment.
   */
  readonly #tell = (): void => {
    if (this.#isTelling) return;
    for (let message = this.#unread.shift(); message !== undefined; message = this.#unread.shift()) {
      this.onmessage?.(message);
      if ('id' in message) continue;
      this.#isTelling = true;
      this.#child?.stdout?.pause();
      setImmediate(() => {
        this.#isTelling = false;
        this.#child?.stdout?.resume();
        this.#tell();
      });
      return;
    }
  };

  /** Whoever waits for it would wait for long. */
  #refuseAnswer(id: RequestId | null, problem: string): void {
    const text = `the MCP server's response is ${problem}`;
    this.onerror?.(new Error(text));
    if (id !== null) this.#unread.push({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message: text } });
  }
}

/** Its stderr, a line at a time, and not more of them than anybody reads. */
class StderrLines {
  readonly #options: ChildProcessOptions;
  readonly #lines: LineReader;
  #second = Number.NEGATIVE_INFINITY;
  #told = 0;
  #untold = 0;

  constructor(options: ChildProcessOptions) {
    this.#options = options;
    this.#lines = new LineReader(STDERR_LINE_MAX_BYTES, {
      onLine: (line) => this.#tell(line),
      onTooLong: () => this.#tell(`(a line longer than ${STDERR_LINE_MAX_BYTES} bytes)`),
    });
  }

  push(chunk: Buffer): void {
    this.#lines.push(chunk);
  }

  end(): void {
    this.#lines.end();
    this.#tellUntold();
  }

  #tell(line: string): void {
    const second = Math.floor(this.#options.clock.monotonic() / 1000);
    if (second !== this.#second) {
      this.#tellUntold();
      this.#second = second;
      this.#told = 0;
    }
    this.#told += 1;
    if (this.#told <= STDERR_LINES_PER_SECOND) this.#options.onStderr(line);
    else this.#untold += 1;
  }

  #tellUntold(): void {
    if (this.#untold > 0) this.#options.onStderr(`(and ${this.#untold} more lines)`);
    this.#untold = 0;
  }
}

const isRequestId = (id: unknown): id is RequestId => typeof id === 'number' || typeof id === 'string';

const startFailure = (command: string, { code, message }: NodeJS.ErrnoException): string => {
  if (code === 'ENOENT') return `program not found: ${command}`;
  if (code === 'EACCES') return `permission denied: ${command}`;
  return message;
};
