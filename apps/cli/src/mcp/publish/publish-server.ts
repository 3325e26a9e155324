// The course of `tunnel mcp-publish`: starts the MCP server with its bridge, a private listener that serves the bridge, and an http
// tunnel to the listener.
import { basename } from 'node:path';
import type { StatusEvent, Tunnel } from '@tunnel/client';
import { pathFrom } from '@tunnel/config/layers';
import { Fault } from '@tunnel/errors';
import {
  type Bridge,
  type BridgeOptions,
  bearerHash,
  bearerProblem,
  bridgeStdio,
  makeBearer,
  type ServerCommand,
  serveBridge,
} from '@tunnel/mcp/bridge';
import pc from 'picocolors';
import { checkHostFlags } from '../../config/described-tunnel.ts';
import { loadConfig } from '../../config/file.ts';
import type { ConnectionFlags } from '../../config/flags.ts';
import { type ConnectionSettings, readToken, resolveSettings } from '../../config/settings.ts';
import type { ExitCode } from '../../io/exit-codes.ts';
import { type Io, VERSION } from '../../io/io.ts';
import { misuse, oneLine } from '../../io/problem-report.ts';
import type { RunHook, RunningClient } from '../../run/hooks/running-client.ts';
import { runTunnels } from '../../run/run-tunnels.ts';
import { listenPrivately } from './private-listener.ts';

export interface McpPublishFlags extends ConnectionFlags {
  readonly subdomain?: string;
  readonly domain?: string;
  /** File with the bearer token for callers. This command has no flag for a file with the API key. */
  readonly tokenFile?: string;
  /** False if callers of the published MCP server need no token. */
  readonly auth: boolean;
  readonly allowTool?: string[];
  readonly capture?: boolean;
}

export const publishServer = async (
  [command = '', ...args]: readonly string[],
  flags: McpPublishFlags,
  io: Io,
): Promise<ExitCode> => {
  const config = loadConfig(flags.config, io);
  const { tokenFile, subdomain, domain, ...connection } = flags;
  checkHostFlags(flags);
  const settings = resolveSettings(connection, config, io);
  const bearer = findBearer({ tokenFile, auth: flags.auth }, settings, io);
  const stateKey = `mcp|${[command, ...args].join(' ')}|${domain ?? subdomain ?? ''}`;
  const publication = new Publication(serverCommand(command, args, io), { bearer, flags, io });
  const listener = await listenPrivately(
    {
      key: `${settings.server}|${stateKey}`,
      respond: (request, response) => serveBridge(publication, request, response),
      onProblem: (reason) => io.logger.warn({ reason }, 'request to the MCP server failed'),
    },
    io,
  );
  const spec = {
    proto: 'http' as const,
    ...listener.local,
    name: nameOf(command),
    // The messages between callers and the server are captured only if the owner asks for captures.
    capture: flags.capture === true,
    ...(subdomain === undefined ? {} : { subdomain }),
    ...(domain === undefined ? {} : { domain }),
  };
  try {
    return await runTunnels(
      {
        settings,
        flags,
        stateKey,
        config: config?.path ?? null,
        source: 'flags',
        tunnels: [spec],
        hooks: [publication],
        readyFields: (tunnel) => ({ mcp_url: mcpUrl(tunnel), mcp_token: bearer.showOnce() }),
      },
      io,
    );
  } finally {
    await listener.close();
  }
};

/** Environment variables hidden from the MCP server, because they contain secrets of the client. */
const KEPT_FROM_SERVER: readonly string[] = ['TUNNEL_API_KEY', 'TUNNEL_P2P_SECRET'];

const serverCommand = (command: string, args: readonly string[], { env, cwd }: Io): ServerCommand => ({
  command,
  args,
  cwd,
  env: Object.fromEntries(Object.entries(env).filter(([name]) => !KEPT_FROM_SERVER.includes(name))),
});

const nameOf = (command: string): string =>
  `mcp-${
    basename(command)
      .replace(/[^\p{L}\p{N}._-]+/gu, '-')
      .slice(0, 40) || 'server'
  }`;

const mcpUrl = ({ publicUrl }: Tunnel): string => `${publicUrl.replace(/\/$/, '')}/mcp`;

/** The bearer token that callers must send. A generated token is forgotten after it has been shown once. */
class Bearer {
  readonly hash: string | null;
  /** File that contains the token, for display. Null for a generated token, and without a token. */
  readonly source: string | null;
  #unshown: string | null;

  constructor({ hash, source, made }: { hash: string | null; source: string | null; made: string | null }) {
    this.hash = hash;
    this.source = source;
    this.#unshown = made;
  }

  showOnce(): string | null {
    const text = this.#unshown;
    this.#unshown = null;
    return text;
  }
}

const findBearer = (
  { tokenFile, auth }: { readonly tokenFile: string | undefined; readonly auth: boolean },
  { token: apiKey }: ConnectionSettings,
  io: Io,
): Bearer => {
  if (!auth) {
    if (tokenFile !== undefined) throw misuse('use --token-file or --no-auth, not both.');
    return new Bearer({ hash: null, source: null, made: null });
  }
  if (tokenFile === undefined) {
    const made = makeBearer();
    return new Bearer({ hash: bearerHash(made), source: null, made });
  }
  const given = readToken(pathFrom(io.cwd, tokenFile, io.home), '--token-file').token.reveal();
  const problem = bearerProblem(given);
  if (problem !== null) throw new Fault('CLIENT_TOKEN_FILE', { file: tokenFile, reason: problem });
  // In all other commands, --token-file names the file with the API key.
  if (given === apiKey.reveal()) {
    throw misuse('the token in --token-file is your API key. Use a separate token for callers of the MCP server.');
  }
  return new Bearer({ hash: bearerHash(given), source: tokenFile, made: null });
};

interface PublicationOptions {
  readonly bearer: Bearer;
  readonly flags: McpPublishFlags;
  readonly io: Io;
}

/** The MCP server with its bridge, as a hook of the run: started before the client connects, and shown to the user. */
class Publication implements RunHook, Pick<Bridge, 'fetch'> {
  readonly output = { onStatus: (event: StatusEvent) => this.#onStatus(event) };
  readonly #command: ServerCommand;
  readonly #options: PublicationOptions;
  #bridge: Bridge | null = null;
  #running: RunningClient | null = null;

  constructor(command: ServerCommand, options: PublicationOptions) {
    this.#command = command;
    this.#options = options;
  }

  fetch(request: Request): Promise<Response> {
    const bridge = this.#bridge;
    return bridge === null ? Promise.resolve(new Response(null, { status: 503 })) : bridge.fetch(request);
  }

  async onRunning(running: RunningClient): Promise<void> {
    const { flags, io } = this.#options;
    this.#running = running;
    if (!flags.auth) running.notice(this.#openWarning(), 'stderr');
    const stop = new AbortController();
    for (const signal of ['SIGINT', 'SIGTERM'] as const) io.signals.on(signal, () => stop.abort());
    try {
      this.#bridge = await bridgeStdio(this.#command, { ...this.#bridgeOptions(), signal: stop.signal });
    } catch (error) {
      // A stop request came before the server was ready. The run ends for the same reason.
      if (!stop.signal.aborted) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#bridge?.close();
  }

  #bridgeOptions(): BridgeOptions {
    const { bearer, flags, io } = this.#options;
    const logger = io.logger;
    return {
      clock: io.clock,
      version: VERSION,
      tokenHash: bearer.hash,
      allowTools: flags.allowTool,
      onStderr: (line) => this.#say(`server: ${oneLine(line)}`),
      onEnded: (reason, restartInMs) =>
        this.#say(`tunnel: the MCP server stopped: ${oneLine(reason)}; restarting in ${restartInMs / 1000} s`),
      onRestarted: () => this.#say('tunnel: the MCP server is running again'),
      onOddity: (reason) => logger.debug({ reason }, 'unexpected message from the MCP server'),
    };
  }

  #onStatus(event: StatusEvent): void {
    if (event.type === 'tunnel-opened' || event.type === 'tunnel-moved') this.#tellAddress(event.tunnel);
    // Callers that wait for changes would delay the end of the run. Calls in progress may finish.
    if (event.type === 'closing') void this.#bridge?.finish();
  }

  #tellAddress(tunnel: Tunnel): void {
    const { bearer, flags } = this.#options;
    if (this.#bridge === null || flags.json === true) return;
    const { name, tools } = this.#bridge.server;
    const made = bearer.showOnce();
    const lines = [
      `MCP server ${oneLine(name)} (${tools.length} ${tools.length === 1 ? 'tool' : 'tools'}): ${mcpUrl(tunnel)}`,
      ...(made === null ? [] : [`Bearer token, shown once: ${made}`]),
      ...(bearer.source === null ? [] : [`Bearer token: from ${oneLine(bearer.source)}`]),
    ];
    this.#running?.notice(lines.join('\n'), 'stdout');
    const unknown = (flags.allowTool ?? []).filter((tool) => !tools.includes(tool));
    if (unknown.length > 0)
      this.#say(`tunnel: the MCP server has no tool ${unknown.map(oneLine).join(', ')} (--allow-tool)`);
  }

  #openWarning(): string {
    const { stderr, env } = this.#options.io;
    const { red } = pc.createColors(stderr.isTTY === true && (env['NO_COLOR'] ?? '') === '');
    return red(
      'tunnel: --no-auth: anyone who knows or guesses the URL can call the tools of this server without a token',
    );
  }

  #say(text: string): void {
    this.#running?.notice(text, 'stderr');
  }
}
