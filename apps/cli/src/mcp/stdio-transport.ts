// MCP over the standard streams, with one message per line in both directions. An invalid line gets an error response and is skipped, so
// that a broken line does not end the connection.
import { type JSONRPCMessage, parseJSONRPCMessage, type Transport } from '@modelcontextprotocol/server';
import type { Io } from '../io/io.ts';

/** Maximum size of a message on stdin. An argument of 1 MiB still reaches its tool, which rejects the argument with a clear message. */
export const MCP_LINE_MAX_BYTES = 4 * 1024 * 1024;
/**
 * Maximum bytes read from stdin while the MCP client does not read stdout. Reading continues up to the limit, because the end of stdin may
 * follow.
 */
export const MCP_HELD_MAX_BYTES = 1024 * 1024;
/** Maximum calls in progress. A response has at most 256 KiB. */
export const MCP_CALLS_MAX = 256;

/** Error codes of JSON-RPC 2.0. `busy` is from the range reserved for servers. */
const CODE = { parse: -32_700, invalid: -32_600, busy: -32_000 } as const;

export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Resolves when no more input can arrive. */
  readonly ended: Promise<void>;
  readonly #stdin: NodeJS.ReadableStream;
  readonly #stdout: Io['stdout'];
  /** Parts of an incomplete line. */
  #parts: Buffer[] = [];
  #bytes = 0;
  /** True while the rest of a line over the size limit is skipped. */
  #isSkipping = false;
  /** Ids of accepted requests without a response. */
  readonly #underWay = new Set<unknown>();
  /** True while the host does not read responses. New input is then held without processing. */
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

  /** Resolves when all output has been read, or can no longer be read. A process that ends earlier loses the rest of a line. */
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
    // Some input is read even now, because the end of stdin may follow, and must be noticed even if the host reads nothing.
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
      // Two requests with the same id would count as one request, and their responses could not be told apart.
      if (this.#underWay.has(message.id)) {
        return this.#refuse(CODE.invalid, 'a call with this id is in progress', message.id);
      }
      if (this.#underWay.size >= MCP_CALLS_MAX) {
        const reason = `${MCP_CALLS_MAX} calls are in progress; wait for some to finish`;
        return this.#refuse(CODE.busy, reason, message.id);
      }
      this.#underWay.add(message.id);
    }
    // A canceled call gets no response.
    if ('method' in message && message.method === 'notifications/cancelled') {
      this.#underWay.delete(message.params?.['requestId']);
    }
    this.onmessage?.(message);
  }

  #refuse(code: number, message: string, id: string | number | null = null): void {
    this.onerror?.(new Error(`line rejected: ${message}`));
    this.#write({ jsonrpc: '2.0', id, error: { code, message } });
  }

  /**
   * Writes a message. While the host does not read responses, no more requests are accepted, because their responses would pile up in
   * memory.
   */
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
