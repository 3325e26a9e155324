// The course of `tunnel mcp`: MCP over the standard streams, and a shutdown that leaves nothing behind. The code that opens tunnels and
// calls edges is loaded with the first call that needs the code, so that the list of tools is available immediately.

import { Console } from 'node:console';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { createToolServer, TOOL_NAMES, type ToolHost, type ToolName, type ToolOutcome } from '@tunnel/mcp/tools';
import { SingleFlight } from '@tunnel/runtime';
import { LoginFile } from '../api/login-file.ts';
import { EXIT, type ExitCode } from '../io/exit-codes.ts';
import { type Io, VERSION } from '../io/io.ts';
import { listenForStops, pause } from '../io/until-stopped.ts';
import { MCP_DRAIN_MS } from './limits.ts';
import type { LocalHost, LocalHostFlags } from './local-host.ts';
import type { McpLog } from './mcp-log.ts';
import { StdioTransport } from './stdio-transport.ts';

/** Maximum time from the end of stdin, or from a signal, to the end of the process, even if the edge does not respond. */
const MCP_CLOSE_TIMEOUT_MS = 2000;
/** Interval of the check whether the program that started the server is still running. */
const MCP_PARENT_LOOK_EVERY_MS = 1000;

export interface McpRun {
  readonly flags: LocalHostFlags;
  readonly readOnly: boolean;
  /** Returns the currently allowed targets, or null if the user has set none. */
  readonly allow: () => readonly string[] | null;
}

export const serveMcp = async (run: McpRun, io: Io): Promise<ExitCode> => {
  // stdout is reserved for the protocol, so console output of libraries goes to stderr.
  const { console } = globalThis;
  globalThis.console = new Console(process.stderr, process.stderr);
  try {
    return await serve(run, io);
  } finally {
    globalThis.console = console;
  }
};

const serve = async (run: McpRun, io: Io): Promise<ExitCode> => {
  const stop = listenForStops(io);
  // SIGHUP is ignored, because a closed terminal does not mean that the MCP host has exited.
  io.signals.on('SIGHUP', () => {});
  const loaded = loadOnce(run, io, () => stop.ask());
  const host = lazyHost(io, loaded.get);
  const transport = new StdioTransport(io);
  const server = serveStdio(
    () =>
      createToolServer(host, {
        version: VERSION,
        clock: io.clock,
        readOnly: run.readOnly,
        onCall: (outcome) => loaded.tell(outcome),
      }),
    { transport, onerror: ({ message }) => loaded.warn(message) },
  );
  const parent = watchParent(io, () => {
    io.stderr.write('tunnel: the program that started this server has exited\n');
    stop.ask();
  });
  void transport.ended.then(() => stop.ask());
  await new Promise<void>((resolve) => {
    if (stop.asked.aborted) resolve();
    stop.asked.addEventListener('abort', () => resolve(), { once: true });
  });
  parent.cancel();
  const late = new AbortController();
  // Waits a moment for a slow reader of the responses, but not longer for a reader that reads nothing.
  const read = Promise.race([transport.flushed(), pause(MCP_DRAIN_MS, late.signal, io)]);
  const closing = server.close().then(() => Promise.all([loaded.close(), read]));
  await Promise.race([closing, pause(MCP_CLOSE_TIMEOUT_MS, late.signal, io), stop.atOnce]);
  late.abort();
  return EXIT.endedAsAsked;
};

interface Loaded {
  get(): Promise<LocalHost>;
  tell(outcome: ToolOutcome): void;
  warn(text: string): void;
  close(): Promise<void>;
}

/** Loads the host of the tools once. A failed load, such as with an unreadable config.yml, is repeated with the next call. */
const loadOnce = (run: McpRun, io: Io, onStop: () => void): Loaded => {
  const load = async (): Promise<{ host: LocalHost; log: McpLog }> => {
    const [{ LocalHost }, { openMcpLog }, { faultOf }] = await Promise.all([
      import('./local-host.ts'),
      import('./mcp-log.ts'),
      import('../io/problem-report.ts'),
    ]);
    try {
      const log = openMcpLog(run.flags, io);
      return { host: new LocalHost({ flags: run.flags, allow: run.allow, io, outputs: log.outputs, onStop }), log };
    } catch (error) {
      throw faultOf(error) ?? error;
    }
  };
  const loading = new SingleFlight(load, { keepsResult: true });
  return {
    get: async () => (await loading.run()).host,
    tell: (outcome) =>
      void loading.current?.then(
        ({ log }) => log.toolCalled(outcome),
        () => {},
      ),
    warn: (text) => io.stderr.write(`tunnel: ${text}\n`),
    close: async () => {
      const loaded = await loading.current?.catch(() => null);
      await loaded?.host.close();
      loaded?.log.close();
    },
  };
};

/** Tools that need a sign-in. A sign-in or sign-out while the server runs takes effect with the next listing of tools. */
const WITH_LOGIN: ReadonlySet<ToolName> = new Set(['get_usage', 'list_keys']);
const WITHOUT_LOGIN: ReadonlySet<ToolName> = new Set(TOOL_NAMES.filter((name) => !WITH_LOGIN.has(name)));
const ALL: ReadonlySet<ToolName> = new Set(TOOL_NAMES);

const lazyHost = (io: Io, get: () => Promise<LocalHost>): ToolHost => {
  const login = new LoginFile(io);
  return {
    get tools() {
      return login.exists() ? ALL : WITHOUT_LOGIN;
    },
    listTunnels: async (...args) => (await get()).listTunnels(...args),
    getTunnel: async (...args) => (await get()).getTunnel(...args),
    closeTunnel: async (...args) => (await get()).closeTunnel(...args),
    listRequests: async (...args) => (await get()).listRequests(...args),
    getRequest: async (...args) => (await get()).getRequest(...args),
    replayRequest: async (...args) => (await get()).replayRequest(...args),
    waitForRequest: async (...args) => (await get()).waitForRequest(...args),
    listPools: async (...args) => (await get()).listPools(...args),
    getStatus: async (...args) => (await get()).getStatus(...args),
    getUsage: async (...args) => (await get()).getUsage(...args),
    listKeys: async (...args) => (await get()).listKeys(...args),
    openTunnel: async (...args) => (await get()).openTunnel(...args),
    runDoctor: async (...args) => (await get()).runDoctor(...args),
  };
};

/**
 * Calls `onGone` when the parent process has exited. A killed host closes stdin of this process, but not if another child of the host
 * holds the pipe, or if a shell runs in between.
 */
const watchParent = (io: Io, onGone: () => void): { cancel(): void } => {
  const parent = process.ppid;
  const timer = io.clock.setInterval(() => {
    if (process.ppid === parent) return;
    timer.cancel();
    onGone();
  }, MCP_PARENT_LOOK_EVERY_MS);
  return timer;
};
