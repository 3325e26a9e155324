// MCP over the standard streams: one message a line, each way. What is no message is answered and passed over: a broken line ends nothing.
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server';
import type { Io } from '../io/io.ts';

/** one message on stdin: an argument of a MiB is refused by its tool, in words */
export const MCP_LINE_MAX_BYTES = 4 * 1024 * 1024;
/** Bytes read from stdin while the MCP client does not read stdout. The end of stdin may lie behind them. */
export const MCP_HELD_MAX_BYTES = 1024 * 1024;
/** calls under way; each of them answers with 256 KiB at most */
export const MCP_CALLS_MAX = 256;

/** The codes of JSON-RPC 2.0, and one of those that it leaves to servers. */
const CODE = { parse: -32_700, invalid: -32_600, busy: -32_000 } as const;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Settles when nothing more will come in. */
  readonly ended: Promise<void>;
  readonly #stdin: NodeJS.ReadableStream;
  readonly #stdout: Io['stdout'];
  /** The beginning of a line whose end has not come. */
  #parts: Buffer[] = [];
  #bytes = 0;
  /** Of one that is too long: the rest of it is not kept. */
  #isSkipping = false;
  /** Ids of requests that were taken and not answered. */
  readonly #underWay = new Set<unknown>();
  /** Nobody takes our answers: what comes in meanwhile is not looked at. */
  #isFull = false;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isClosed = false;
  #settleEnded: () => void = () => {};

  constructor({ stdin, stdout }: Pick<Io, 'stdin' | 'stdout'>) {
    this.#stdin = stdin;
    this.#stdout = stdout;
    this.ended = new Promise((resolve) => {
      this.#settleEnded = resolve;
    });
  }

  async start(): Promise<void> {
    this.#stdin.on('data', this.#onData);
    for (const event of ['end', 'close', 'error']) this.#stdin.on(event, this.#onEnd);
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#isClosed) return;
    if ('id' in message && !('method' in message)) this.#underWay.delete(message.id);
    this.#write(message);
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stdin.off('data', this.#onData);
    for (const event of ['end', 'close']) this.#stdin.off(event, this.#onEnd);
    this.#stdin.pause();
    this.#held = [];
    this.onclose?.();
  }

  /** Settles when all that was said has been taken, or nobody will: a process that ends before loses the rest of a line. */
  async flushed(): Promise<void> {
    const stdout = this.#stdout as Partial<Pick<NodeJS.WriteStream, 'writableLength'>> &
      Pick<NodeJS.WriteStream, 'write'>;
    if ((stdout.writableLength ?? 0) === 0) return;
    await new Promise<void>((resolve) => void stdout.write('', () => resolve()));
  }

  readonly #onEnd = (): void => this.#settleEnded();

  readonly #onData = (chunk: Buffer | string): void => {
    const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    if (!this.#isFull) return this.#read(bytes);
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
    // Some is taken in all the same: behind it the end may come, and is not to wait for a host that reads nothing.
    if (this.#heldBytes >= MCP_HELD_MAX_BYTES) this.#stdin.pause();
  };

  #read(bytes: Buffer): void {
    let rest = bytes;
    for (let end = rest.indexOf(0x0a); end >= 0; end = rest.indexOf(0x0a)) {
      this.#keep(rest.subarray(0, end));
      rest = rest.subarray(end + 1);
      this.#onLine();
      if (!this.#isFull) continue;
      this.#held.unshift(rest);
      this.#heldBytes += rest.length;
      return;
    }
    this.#keep(rest);
  }

  readonly #onDrain = (): void => {
    this.#isFull = false;
    while (!this.#isFull && !this.#isClosed) {
      const bytes = this.#held.shift();
      if (bytes === undefined) break;
      this.#heldBytes -= bytes.length;
      this.#read(bytes);
    }
    if (!this.#isClosed && this.#heldBytes < MCP_HELD_MAX_BYTES) this.#stdin.resume();
  };

  #keep(part: Buffer): void {
    this.#bytes += part.length;
    if (this.#bytes > MCP_LINE_MAX_BYTES) {
      this.#isSkipping = true;
      this.#parts = [];
    } else if (part.length > 0) this.#parts.push(part);
  }

  #onLine(): void {
    const text = Buffer.concat(this.#parts).toString('utf8').trim();
    const isTooLong = this.#isSkipping;
    this.#parts = [];
    this.#bytes = 0;
    this.#isSkipping = false;
    if (isTooLong) return this.#refuse(CODE.invalid, `the line is longer than ${MCP_LINE_MAX_BYTES} bytes`);
    if (text === '') return;
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      return this.#refuse(CODE.parse, 'the line is not JSON');
    }
    this.#onJson(json);
  }

  #onJson(json: unknown): void {
    let message: JSONRPCMessage;
    try {
      message = parseJSONRPCMessage(json);
    } catch {
      return this.#refuse(CODE.invalid, 'the line is not a JSON-RPC 2.0 message', idOf(json));
    }
    if ('method' in message && 'id' in message) {
      // Two of one id would count as one, and their answers could not be told apart.
      if (this.#underWay.has(message.id)) {
        return this.#refuse(CODE.invalid, 'a call with this id is in progress', message.id);
      }
      if (this.#underWay.size >= MCP_CALLS_MAX) {
        const reason = `${MCP_CALLS_MAX} calls are in progress; wait for some to finish`;
        return this.#refuse(CODE.busy, reason, message.id);
      }
      this.#underWay.add(message.id);
    }
    // A call that is cancelled is not answered.
    if ('method' in message && message.method === 'notifications/cancelled') {
      this.#underWay.delete(message.params?.['requestId']);
    }
    this.onmessage?.(message);
  }

  #refuse(code: number, message: string, id: string | number | null = null): void {
    this.onerror?.(new Error(`line rejected: ${message}`));
    this.#write({ jsonrpc: '2.0', id, error: { code, message } });
  }

  /** Who does not read answers has no more of his questions taken: else they would pile up here. */
  #write(message: object): void {
    if (this.#stdout.write(`${JSON.stringify(message)}\n`) !== false) return;
    const stdout = this.#stdout as Partial<Pick<NodeJS.WriteStream, 'once'>>;
    if (stdout.once === undefined || this.#isFull) return;
    this.#isFull = true;
    stdout.once('drain', this.#onDrain);
  }
}

const idOf = (json: unknown): string | number | null => {
  const id = typeof json === 'object' && json !== null && 'id' in json ? json.id : null;
  return typeof id === 'string' || typeof id === 'number' ? id : null;
};
