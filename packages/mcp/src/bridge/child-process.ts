// One run of a stdio server process: its messages, its stderr output and its exit. The process never outlives the bridge: if the bridge
// dies, the process's stdin closes, and a watch kills the remaining processes of the group.
import { type ChildProcess as NodeChild, spawn } from 'node:child_process';
import { isJSONRPCResponse, type JSONRPCMessage, type RequestId, type Transport } from '@modelcontextprotocol/client';
import type { Clock, Timer } from '@tunnel/runtime';
import { BRIDGE_LIMITS } from './bridge-limits.ts';
import { GroupWatch, STOP_STEP_MS } from './group-watch.ts';
import { LineReader } from './line-reader.ts';

/** Time after the process's exit for reading its last output. Also ends the wait for pipes held open by its child processes. */
const DRAIN_AFTER_EXIT_MS = 500;
/** Time between closing stdin or stdout and exiting. A process still running afterwards is killed and restarted. */
export const CLOSED_PIPE_MS = 1000;
/** Maximum length of a stderr line. Longer lines are replaced by a note. */
const STDERR_LINE_MAX_BYTES = 4 * 1024;
/** Maximum stderr lines reported per second. Further lines are only counted. */
const STDERR_LINES_PER_SECOND = 100;
/**
 * Maximum bytes waiting to be read by the server, enough for one message per concurrent call. Beyond the limit, the server counts as
 * stuck and is restarted.
 */
const UNREAD_MAX_BYTES = 33 * 1024 * 1024;

/** Command that starts the server. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

export interface ChildProcessOptions {
  readonly clock: Clock;
  /** Receives each stderr line of the process. */
  readonly onStderr: (line: string) => void;
}

/** JSON-RPC error code -32603, sent to a caller if the server's response cannot be forwarded. */
export const INTERNAL_ERROR = -32603;
const hasGroups = process.platform !== 'win32';

/**
 * Serializes a message as one line. Escapes U+2028 and U+2029: JSON allows both characters, but Node's readline, used by many servers,
 * treats them as line breaks.
 */
const lineOf = (message: JSONRPCMessage): string =>
  JSON.stringify(message).replace(/[\u2028\u2029]/g, (separator) => (separator === '\u2028' ? '\\u2028' : '\\u2029'));

/**
 * Transport to a server process. The SDK recognizes a stdio transport by the properties `pid` and `stderr`, and then takes silence after
 * the SDK's first request as a sign of an older server.
 */
export class ChildProcess implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly stderr = null;
  readonly #server: ServerCommand;
  readonly #options: ChildProcessOptions;
  readonly #lines: LineReader;
  /** Messages received but not delivered yet, at most the messages of one chunk. */
  #unread: JSONRPCMessage[] = [];
  #isTelling = false;
  #child: NodeChild | null = null;
  #watch: GroupWatch | null = null;
  #isOver = false;
  #isClosing = false;
  /** Set if the process was killed because communication with the process had become impossible. */
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

  /** Readable reason for the end of the process, such as `exited with code 1`. */
  get end(): string {
    return this.#end;
  }

  /** True if the process ended without close() having been called, or could not be started. */
  get endedByItself(): boolean {
    return this.#endedByItself;
  }

  start(): Promise<void> {
    const { command, args, cwd, env } = this.#server;
    return new Promise((resolve, reject) => {
      // Starts the process in a separate process group: Ctrl-C at the terminal reaches only the bridge, which then stops the process in
      // order.
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
        // Node.js also emits `error` if a signal could not be sent. The process then continues to run.
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

  /** Handles a closed pipe. In most cases, the process exits immediately afterwards. */
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

  /**
   * Handles the exit of the process. The rest of its output is still read, and its child processes are killed, because they may hold the
   * pipes open.
   */
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

  /** Stops the process: closes stdin, then sends SIGTERM, then SIGKILL. Resolves when the process has ended. */
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
      // The process group has no members left.
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
      // Many servers print log lines to stdout, which is harmless.
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
   * Delivers the received messages one by one. The SDK handles responses immediately and notifications a moment later, so a progress
   * notification just before the response would be lost. After each notification, delivery therefore pauses for one turn of the event
   * loop, even after the last received message: stdout is paused meanwhile, and `resume` delivers new data before that turn.
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

  /** Answers a caller with an error in place of an unusable response, so that the caller does not wait until the timeout. */
  #refuseAnswer(id: RequestId | null, problem: string): void {
    const text = `the MCP server's response is ${problem}`;
    this.onerror?.(new Error(text));
    if (id !== null) this.#unread.push({ jsonrpc: '2.0', id, error: { code: INTERNAL_ERROR, message: text } });
  }
}

/** Splits the stderr output of a process into lines, and limits the number of lines reported per second. */
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
