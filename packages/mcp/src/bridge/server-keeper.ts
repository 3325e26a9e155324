// Keeps one stdio MCP server running for all callers: starts it, learns what it is, starts it again when it ends, and takes requests to it.
import {
  Client,
  type Implementation,
  type ProgressCallback,
  ProtocolError,
  type Result,
  SdkError,
  type ServerCapabilities,
  type Tool,
} from '@modelcontextprotocol/client';
import { Fault } from '@tunnel/errors';
import type { Clock, Timer } from '@tunnel/runtime';
import { ChildProcess, INTERNAL_ERROR, type ServerCommand } from './child-process.ts';

/**
 * how long the server may take to answer a call, from its last sign of progress
 * @limit mcp: Published server: call, time without progress | the call fails
 */
const CALL_TIMEOUT_MS = 600_000;
/** how long a call may take at all, however often it reports progress */
const CALL_TOTAL_MS = 3_600_000;
/**
 * how long the server may take to start and say what it is: `npx` fetches it first
 * @limit mcp: Published server: start, time | the start has failed and is retried
 */
const START_TIMEOUT_MS = 60_000;
/** pages of the list of tools that are read when the server starts; one with more is not served */
const TOOL_PAGES_MAX = 64;
/** pause before the server is started again; doubled each time it ends early */
const RESTART_FIRST_MS = 1000;
/** the longest of these pauses */
const RESTART_LONGEST_MS = 30_000;
/** a server that ran for so long has not ended early: the next pause is the first again */
export const RESTART_FORGET_AFTER_MS = 60_000;

/** What the server says of itself, kept while it is away. */
export interface ServerFacts {
  readonly info: Implementation;
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
  readonly tools: readonly Tool[];
  /** The revision of the protocol it speaks. */
  readonly protocolVersion: string;
}

export interface KeeperEvents {
  /** It has ended by itself, and is started again. */
  onEnded(reason: string, restartInMs: number): void;
  /** It is back. */
  onRestarted(facts: ServerFacts): void;
  /** A list of the server is another one now. */
  onListChanged(list: ChangedList): void;
  onStderr(line: string): void;
  /** For whoever looks for a mistake of the server. */
  onOddity(reason: string): void;
}

export type ChangedList = 'tools' | 'prompts' | 'resources';

export interface KeeperDeps extends KeeperEvents {
  readonly command: ServerCommand;
  /** Silence to what only newer servers know, until it is taken for an older one. */
  readonly probeTimeoutMs: number;
  /** What the server is told of who asks. */
  readonly clientInfo: Implementation;
  readonly clock: Clock;
}

export interface ForwardOptions {
  readonly signal: AbortSignal;
  /** null: the caller does not want to know. */
  readonly onProgress: ProgressCallback | null;
}

/** Of the methods that are taken to the server. */
export type ForwardedMethod =
  | 'tools/call'
  | 'resources/list'
  | 'resources/templates/list'
  | 'resources/read'
  | 'prompts/list'
  | 'prompts/get'
  | 'completion/complete';

interface Connection {
  readonly client: Client;
  readonly child: ChildProcess;
}

/** The pause before the next start, after so many ends in a row that came early. */
export const restartDelayMs = (earlyEnds: number): number =>
  Math.min(RESTART_FIRST_MS * 2 ** Math.min(earlyEnds, 10), RESTART_LONGEST_MS);

export class ServerKeeper {
  readonly #options: KeeperDeps;
  #connection: Connection | null = null;
  #starting: ChildProcess | null = null;
  #facts: ServerFacts | null = null;
  /** It ends when it is asked what only newer servers know: it is not asked again. */
  #isKnownLegacy = false;
  #isClosed = false;
  #earlyEnds = 0;
  #since = 0;
  #timer: Timer | null = null;

  constructor(options: KeeperDeps) {
    this.#options = options;
  }

  /** Throws before the first start. */
  get facts(): ServerFacts {
    if (this.#facts === null) throw new Error('the server was never started');
    return this.#facts;
  }

  get pid(): number | null {
    return this.#connection?.child.pid ?? null;
  }

  /** For the first time: whoever started us wants to know why it does not work. Rejects with a Fault. */
  async start(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      throw new Fault('CLIENT_MCP_SERVER', { reason: (error as Error).message }, { cause: error });
    }
  }

  /** Rejects with what the server says, or with -32603 when it cannot say anything. */
  async request(method: ForwardedMethod, params: Record<string, unknown>, options: ForwardOptions): Promise<Result> {
    const connection = this.#connection;
    if (connection === null) throw away();
    const { signal, onProgress } = options;
    try {
      return await connection.client.request(
        { method, params },
        {
          signal,
          timeout: CALL_TIMEOUT_MS,
          maxTotalTimeout: CALL_TOTAL_MS,
          resetTimeoutOnProgress: true,
          ...(onProgress === null ? {} : { onprogress: onProgress }),
        },
      );
    } catch (error) {
      // Also one that was asked as the server ended: its message could not be written any more.
      if (this.#connection !== connection) throw away();
      throw error instanceof SdkError ? new ProtocolError(INTERNAL_ERROR, error.message) : error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#timer?.cancel();
    const connection = this.#connection;
    this.#connection = null;
    await Promise.all([connection?.child.close(), this.#starting?.close()]);
    await connection?.client.close();
  }

  async #connect(): Promise<void> {
    try {
      await this.#tryConnect(this.#isKnownLegacy);
    } catch (error) {
      // Some servers of the older revisions end when they are asked anything before `initialize`. Of those that are known for it, the next asks anew.
      const wasAsked = !this.#isKnownLegacy && error instanceof EndedEarly && error.wasRunning;
      this.#isKnownLegacy = false;
      if (!wasAsked || this.#isClosed) throw error;
      await this.#tryConnect(true);
      this.#isKnownLegacy = true;
    }
  }

  async #tryConnect(isLegacy: boolean): Promise<void> {
    const { command, clock, onStderr, onOddity } = this.#options;
    const child = new ChildProcess(command, { clock, onStderr });
    const client = new Client(this.#options.clientInfo, {
      // Nothing is declared that a server could ask its client for: there is no one caller that it could ask.
      capabilities: {},
      versionNegotiation: { mode: 'auto', probe: { timeoutMs: this.#options.probeTimeoutMs } },
      inputRequired: { autoFulfill: false },
      listMaxPages: TOOL_PAGES_MAX,
      listChanged: this.#listChanged(() => this.#connection?.client === client),
    });
    client.onerror = (error) => onOddity(error.message);
    this.#starting = child;
    try {
      const prior = isLegacy ? { prior: { kind: 'legacy' as const } } : {};
      await client.connect(child, { timeout: START_TIMEOUT_MS, ...prior });
      this.#facts = await this.#learn(client);
    } catch (error) {
      await child.close();
      throw child.endedByItself ? new EndedEarly(child.end, child.pid !== null) : error;
    } finally {
      this.#starting = null;
    }
    if (this.#isClosed) return child.close();
    this.#connection = { client, child };
    this.#since = clock.monotonic();
    client.onclose = () => this.#onEnd(client, child);
    // It may have ended since its last answer.
    if (child.endedByItself) this.#onEnd(client, child);
  }

  async #learn(client: Client): Promise<ServerFacts> {
    const capabilities = client.getServerCapabilities() ?? {};
    const timeout = { timeout: START_TIMEOUT_MS };
    const { tools } = capabilities.tools === undefined ? { tools: [] } : await client.listTools(undefined, timeout);
    return {
      info: client.getServerVersion() ?? { name: 'mcp-server', version: '0' },
      capabilities,
      instructions: client.getInstructions(),
      tools,
      protocolVersion: client.getNegotiatedProtocolVersion() ?? '',
    };
  }

  /** Lists are asked for anew when somebody wants them; that of the tools is kept, and read again at once. */
  #listChanged(isCurrent: () => boolean) {
    const { onListChanged, onOddity } = this.#options;
    return {
      tools: {
        onChanged: (error: Error | null, tools: Tool[] | null) => {
          if (!isCurrent()) return;
          if (tools === null) return onOddity(`cannot refresh the list of tools: ${error?.message}`);
          this.#facts = { ...this.facts, tools };
          onListChanged('tools');
        },
      },
      prompts: { autoRefresh: false, onChanged: () => isCurrent() && onListChanged('prompts') },
      resources: { autoRefresh: false, onChanged: () => isCurrent() && onListChanged('resources') },
    };
  }

  #onEnd(client: Client, child: ChildProcess): void {
    if (this.#connection?.client !== client) return;
    this.#connection = null;
    if (this.#isClosed) return;
    if (this.#options.clock.monotonic() - this.#since >= RESTART_FORGET_AFTER_MS) this.#earlyEnds = 0;
    this.#restart(child.end);
  }

  #restart(reason: string): void {
    const delayMs = restartDelayMs(this.#earlyEnds);
    this.#earlyEnds += 1;
    this.#options.onEnded(reason, delayMs);
    this.#timer = this.#options.clock.setTimeout(() => {
      this.#connect().then(
        () => this.#isClosed || this.#options.onRestarted(this.facts),
        (error: unknown) => this.#isClosed || this.#restart((error as Error).message),
      );
    }, delayMs);
  }
}

const away = (): ProtocolError =>
  new ProtocolError(INTERNAL_ERROR, 'the MCP server behind this URL exited and is restarting; try again soon');

class EndedEarly extends Error {
  /** false: there is no such program. */
  readonly wasRunning: boolean;

  constructor(message: string, wasRunning: boolean) {
    super(message);
    this.wasRunning = wasRunning;
  }
}
