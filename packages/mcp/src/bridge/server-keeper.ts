// Keeps one stdio MCP server running for all callers: starts the server, reads its capabilities and tools, restarts the server after an
// exit, and forwards requests.
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
 * Timeout of a call, measured from the server's last progress report.
 * @limit mcp: Published server: call, time without progress | the call fails
 */
const CALL_TIMEOUT_MS = 600_000;
/** Maximum duration of a call, regardless of progress reports. */
const CALL_TOTAL_MS = 3_600_000;
/**
 * Time for the server to start and describe itself. Long enough for `npx` to download the server first.
 * @limit mcp: Published server: start, time | the start has failed and is retried
 */
const START_TIMEOUT_MS = 60_000;
/** Maximum pages of the list of tools, which is read when the server starts. A server with more pages is rejected. */
const TOOL_PAGES_MAX = 64;
/** First pause before a restart of the server. The pause doubles with every early exit. */
const RESTART_FIRST_MS = 1000;
/** Longest pause before a restart of the server. */
const RESTART_LONGEST_MS = 30_000;
/** Run time after which an exit of the server no longer counts as early. The next pause is again the first pause. */
export const RESTART_FORGET_AFTER_MS = 60_000;

/** Description of the server in its own words, kept while the server is not running. */
export interface ServerFacts {
  readonly info: Implementation;
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
  readonly tools: readonly Tool[];
  /** Protocol revision negotiated with the server. */
  readonly protocolVersion: string;
}

export interface KeeperEvents {
  /** Called when the server has exited unexpectedly and will be restarted. */
  onEnded(reason: string, restartInMs: number): void;
  /** Called when the server has been restarted. */
  onRestarted(facts: ServerFacts): void;
  /** Called when a list of the server has changed. */
  onListChanged(list: ChangedList): void;
  onStderr(line: string): void;
  /** Reports unexpected behavior of the server, for debugging. */
  onOddity(reason: string): void;
}

export type ChangedList = 'tools' | 'prompts' | 'resources';

export interface KeeperDeps extends KeeperEvents {
  readonly command: ServerCommand;
  /**
   * Time without a response to the first request of the newer protocol. Afterwards the server is treated as a server of the older
   * protocol.
   */
  readonly probeTimeoutMs: number;
  /** Name and version of the bridge, sent to the server as client information. */
  readonly clientInfo: Implementation;
  readonly clock: Clock;
}

export interface ForwardOptions {
  readonly signal: AbortSignal;
  /** Receives progress reports. Null if the caller did not request progress. */
  readonly onProgress: ProgressCallback | null;
}

/** MCP methods that are forwarded to the server. */
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

/** Returns the pause before the next start, after a number of consecutive early exits. */
export const restartDelayMs = (earlyEnds: number): number =>
  Math.min(RESTART_FIRST_MS * 2 ** Math.min(earlyEnds, 10), RESTART_LONGEST_MS);

export class ServerKeeper {
  readonly #options: KeeperDeps;
  #connection: Connection | null = null;
  #starting: ChildProcess | null = null;
  #facts: ServerFacts | null = null;
  /** Set if the server exits when it receives the first request of the newer protocol. The next start then skips that request. */
  #isKnownLegacy = false;
  #isClosed = false;
  #earlyEnds = 0;
  #since = 0;
  #timer: Timer | null = null;

  constructor(options: KeeperDeps) {
    this.#options = options;
  }

  /** Latest description of the server. Throws before the first start. */
  get facts(): ServerFacts {
    if (this.#facts === null) throw new Error('the server was never started');
    return this.#facts;
  }

  get pid(): number | null {
    return this.#connection?.child.pid ?? null;
  }

  /**
   * Starts the server for the first time. Rejects with a Fault, because the user needs to know why the start failed. Later restarts retry
   * automatically.
   */
  async start(): Promise<void> {
    try {
      await this.#connect();
    } catch (error) {
      throw new Fault('CLIENT_MCP_SERVER', { reason: (error as Error).message }, { cause: error });
    }
  }

  /** Forwards a request to the server. Rejects with the server's error, or with -32603 if the server cannot respond. */
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
      // The server was replaced during the request, or exited before the message could be written.
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
      // Some servers of older revisions exit on any request before `initialize`, so the start is repeated without the request of the
      // newer protocol. If a start without that request fails, the next start sends the request again.
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
      // Declares no client capabilities: the server could not tell which of the many callers should respond to its requests.
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
    // The server may have exited after its last response.
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

  /**
   * Handlers for changed lists. The list of tools is cached, so it is read again immediately. Other lists are read from the server on
   * request.
   */
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
  /** Whether the server process was running. False if the process could not be started. */
  readonly wasRunning: boolean;

  constructor(message: string, wasRunning: boolean) {
    super(message);
    this.wasRunning = wasRunning;
  }
}
