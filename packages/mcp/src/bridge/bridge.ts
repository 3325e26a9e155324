// `bridgeStdio` serves a stdio MCP server as a web-standard request handler. Callers can use the older or the newer protocol, regardless
// of the protocol of the server.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createMcpHandler } from '@modelcontextprotocol/server';
import type { Clock } from '@tunnel/runtime';
import { allowedTools, makeBridgedServer } from './bridged-server.ts';
import type { ServerCommand } from './child-process.ts';
import { OpenCalls } from './open-calls.ts';
import { RequestGate } from './request-gate.ts';
import { type ChangedList, type KeeperEvents, ServerKeeper } from './server-keeper.ts';

/** Maximum callers that subscribe to list changes (`subscriptions/listen`). */
const SUBSCRIPTIONS_MAX = 32;
/**
 * Time without a response to the first request of the newer protocol. Afterwards the server is treated as a server of the older protocol.
 */
const PROBE_TIMEOUT_MS = 10_000;

export interface BridgeOptions extends Partial<Omit<KeeperEvents, 'onListChanged'>> {
  readonly clock: Clock;
  /** Version of the bridging program, sent to the server. */
  readonly version: string;
  /** Hash of the bearer token required from callers. Null allows calls without a token. */
  readonly tokenHash: string | null;
  /** Names of the tools that callers can see and call. Default: all tools of the server. */
  readonly allowTools?: readonly string[] | undefined;
  /** Time to wait for a response in the newer protocol. Default: PROBE_TIMEOUT_MS. */
  readonly probeTimeoutMs?: number;
  /** Cancels the start of the server when aborted. */
  readonly signal?: AbortSignal;
}

export interface Bridge {
  /** Handles a request to the MCP endpoint. The program that mounts the bridge chooses the path. */
  fetch(request: Request): Promise<Response>;
  /** Name and protocol revision of the server, and the names of the tools visible to callers. */
  readonly server: { readonly name: string; readonly protocolVersion: string; readonly tools: readonly string[] };
  /** Process id of the server, or null while the server is not running. */
  readonly pid: number | null;
  /** Number of calls in progress at the server. */
  readonly openCalls: number;
  /** Waits until the calls in progress have ended, then closes the bridge. Does not wait for subscriptions to list changes. */
  finish(): Promise<void>;
  /** Stops the stdio server behind the bridge, and ends all calls in progress. */
  close(): Promise<void>;
}

/** Starts the server and the bridge. Rejects with CLIENT_MCP_SERVER if the first start of the server fails. */
export const bridgeStdio = async (command: ServerCommand, options: BridgeOptions): Promise<Bridge> => {
  const calls = new OpenCalls();
  const allowTools = options.allowTools === undefined ? null : new Set(options.allowTools);
  const keeper = makeKeeper(command, options, (list) => handler.notify[`${list}Changed`]());
  const handler = createMcpHandler((context) => makeBridgedServer({ keeper, calls, allowTools }, context), {
    // A tool may run for minutes. The SSE response starts immediately and is kept alive, because proxies would otherwise time out.
    responseMode: 'sse',
    maxSubscriptions: SUBSCRIPTIONS_MAX,
    onerror: (error) => options.onOddity?.(error.message),
  });
  const gate = new RequestGate(handler.fetch, calls, options.tokenHash);
  const close = async (): Promise<void> => {
    gate.shut();
    await Promise.all([keeper.close(), handler.close()]);
  };
  await startUnlessAborted(keeper, options.signal);
  return {
    fetch: (request) => gate.answer(request),
    get server() {
      const { facts } = keeper;
      const tools = allowedTools(facts, allowTools).map(({ name }) => name);
      return { name: facts.info.name, protocolVersion: facts.protocolVersion, tools };
    },
    get pid() {
      return keeper.pid;
    },
    get openCalls() {
      return calls.size;
    },
    finish: async () => {
      await calls.idle();
      // Waits one turn of the event loop after the last call has ended, because the response of the call is written within that turn.
      await nextTurn();
      await close();
    },
    close,
  };
};

const makeKeeper = (
  command: ServerCommand,
  options: BridgeOptions,
  onListChanged: (list: ChangedList) => void,
): ServerKeeper =>
  new ServerKeeper({
    command,
    probeTimeoutMs: options.probeTimeoutMs ?? PROBE_TIMEOUT_MS,
    clientInfo: { name: 'tunnel-mcp-publish', version: options.version },
    clock: options.clock,
    onEnded: (reason, restartInMs) => options.onEnded?.(reason, restartInMs),
    onRestarted: (facts) => {
      for (const list of ['tools', 'prompts', 'resources'] as const) onListChanged(list);
      options.onRestarted?.(facts);
    },
    onListChanged,
    onStderr: (line) => options.onStderr?.(line),
    onOddity: (reason) => options.onOddity?.(reason),
  });

const startUnlessAborted = async (keeper: ServerKeeper, signal: AbortSignal | undefined): Promise<void> => {
  const giveUp = (): void => void keeper.close();
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    await keeper.start();
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
};
