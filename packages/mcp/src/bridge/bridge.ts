// `bridgeStdio`: a stdio MCP server as a web-standard handler. Callers of both eras are served whatever the server speaks.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createMcpHandler } from '@modelcontextprotocol/server';
import type { Clock } from '@tunnel/runtime';
import { allowedTools, makeBridgedServer } from './bridged-server.ts';
import type { ServerCommand } from './child-process.ts';
import { OpenCalls } from './open-calls.ts';
import { RequestGate } from './request-gate.ts';
import { type ChangedList, type KeeperEvents, ServerKeeper } from './server-keeper.ts';

/** callers that wait for changes of the lists (`subscriptions/listen`) */
const SUBSCRIPTIONS_MAX = 32;
/** silence to the question of the newer revision; then it is asked as the older one has it */
const PROBE_TIMEOUT_MS = 10_000;

export interface BridgeOptions extends Partial<Omit<KeeperEvents, 'onListChanged'>> {
  readonly clock: Clock;
  /** Of the program that bridges: the server is told who asks. */
  readonly version: string;
  /** Of the bearer that callers have to show; null: anybody may call. */
  readonly tokenHash: string | null;
  /** Left out: every tool. */
  readonly allowTools?: readonly string[] | undefined;
  /** Left out: as the limit has it. */
  readonly probeTimeoutMs?: number;
  /** Aborted: the start is given up. */
  readonly signal?: AbortSignal;
}

export interface Bridge {
  /** Requests to its one path: whoever mounts it knows which. */
  fetch(request: Request): Promise<Response>;
  /** What the server is called, the revision it speaks, and the names of the tools that callers see. */
  readonly server: { readonly name: string; readonly protocolVersion: string; readonly tools: readonly string[] };
  /** Of the server; null while it is away. */
  readonly pid: number | null;
  /** Calls under way at the server. */
  readonly openCalls: number;
  /** Calls under way may end; then as close(). Callers that wait for changes of the lists are let go. */
  finish(): Promise<void>;
  /** Ends the server, and every call with it. */
  close(): Promise<void>;
}

/** Rejects with CLIENT_MCP_SERVER when the server does not start the first time. */
export const bridgeStdio = async (command: ServerCommand, options: BridgeOptions): Promise<Bridge> => {
  const calls = new OpenCalls();
  const allowTools = options.allowTools === undefined ? null : new Set(options.allowTools);
  const keeper = makeKeeper(command, options, (list) => handler.notify[`${list}Changed`]());
  const handler = createMcpHandler((context) => makeBridgedServer({ keeper, calls, allowTools }, context), {
    // A tool may take minutes: the answer begins at once and is kept alive, or whoever stands between would give it up.
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
      // The last answer is written in the same turn that ends its call.
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
