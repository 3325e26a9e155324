// An MCP host at the other end of `tunnel mcp` in the same process: sends calls and collects the answers.
import { PassThrough } from 'node:stream';
import { type Clock, systemClock, type Timer } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly params?: Record<string, unknown>;
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string };
}

/** The result of a tool call: the data, or the text of the refusal. */
export interface Called {
  readonly data: Record<string, unknown>;
  readonly refusal: string | null;
}

const OPENING = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } };

export class McpSession {
  readonly io: TestIo;
  readonly code: Promise<number>;
  readonly #stdin = new PassThrough();
  #lastId = 0;

  constructor(args: readonly string[], options: TestIoOptions) {
    this.io = makeTestIo({ ...options, stdin: this.#stdin });
    this.code = run(['mcp', ...args], this.io);
  }

  static async open(args: readonly string[], options: TestIoOptions): Promise<McpSession> {
    const session = new McpSession(args, options);
    await session.ask('initialize', OPENING);
    session.tell('notifications/initialized', {});
    return session;
  }

  get messages(): readonly Message[] {
    return this.io.events() as Message[];
  }

  tell(method: string, params: object): void {
    this.#stdin.write(`${JSON.stringify({ jsonrpc: '2.0', method, params })}\n`);
  }

  /** Sends a request and returns the request's id. */
  send(method: string, params: object = {}): number {
    this.#lastId += 1;
    this.#stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: this.#lastId, method, params })}\n`);
    return this.#lastId;
  }

  answerTo(id: number): Promise<Message> {
    return eventually(
      () => {
        const found = this.messages.find((message) => message.id === id);
        if (found === undefined) throw new Error(`no answer to ${id}: ${this.io.err()}`);
        return found;
      },
      { timeoutMs: 20_000 },
    );
  }

  ask(method: string, params: object = {}): Promise<Message> {
    return this.answerTo(this.send(method, params));
  }

  async tools(): Promise<string[]> {
    const { result = { tools: [] } } = await this.ask('tools/list');
    return (result['tools'] as { name: string }[]).map(({ name }) => name);
  }

  async call(name: string, args: object = {}): Promise<Called> {
    return calledOf(await this.ask('tools/call', { name, arguments: args }));
  }

  cancel(requestId: number): void {
    this.tell('notifications/cancelled', { requestId });
  }

  /** Ends stdin, and resolves with the exit code. */
  end(): Promise<number> {
    this.#stdin.end();
    return this.code;
  }
}

export const calledOf = ({ result, error }: Message): Called => {
  if (result === undefined) throw new Error(`refused by the protocol: ${JSON.stringify(error)}`);
  const [first] = result['content'] as { text: string }[];
  const isError = result['isError'] === true;
  return { data: (result['structuredContent'] ?? {}) as Called['data'], refusal: isError ? (first?.text ?? '') : null };
};

/** The system clock, with a count of the running timers. */
export const countedClock = (): Clock & { live(): number } => {
  const running = new Set<object>();
  const count = (timer: Timer): Timer => {
    running.add(timer);
    return {
      cancel: () => {
        running.delete(timer);
        timer.cancel();
      },
    };
  };
  return {
    ...systemClock,
    live: () => running.size,
    setTimeout: (fn, ms) => {
      const timer = systemClock.setTimeout(() => {
        running.delete(timer);
        fn();
      }, ms);
      return count(timer);
    },
    setInterval: (fn, ms) => count(systemClock.setInterval(fn, ms)),
  };
};
