// The host of the MCP tools on this computer. Tunnels are opened in this process. All other calls go to the edge or the platform with the
// API key, or to the platform with the sign-in of `tunnel login`. Keys and addresses are looked up for each call, so that a sign-in needs
// no restart of the server.
import {
  CAPTURES_KEPT_MAX,
  type CapturedRequest,
  CHART_DAYS,
  type PlatformClient,
  TUNNEL_LOG_LIMIT,
} from '@tunnel/contract';
import { Fault } from '@tunnel/errors';
import type {
  HostStatus,
  HostUsage,
  OpenedTunnel,
  OpenTunnelInput,
  RequestFilter,
  ShownTunnel,
  ToolCall,
  ToolHost,
} from '@tunnel/mcp/tools';
import { unlessAborted } from '@tunnel/runtime';
import { edgeSource, keyHolder } from '../api/account-tunnels.ts';
import { chooseTunnel } from '../api/choose-tunnel.ts';
import { readGroups } from '../api/edge-api.ts';
import { ACCOUNT_TUNNELS_MAX, EdgeTunnels } from '../api/edge-tunnels.ts';
import { LoginFile } from '../api/login-file.ts';
import { PlatformLogin } from '../api/platform-login.ts';
import type { Io } from '../io/io.ts';
import { faultOf } from '../io/problem-report.ts';
import { collectDiagnostics, examinedFields } from '../setup/collect-diagnostics.ts';
import { awaitRequest } from './await-request.ts';
import { likelierError, mayFallBack, noPlatform } from './fallback.ts';
import { hostStatus } from './host-status.ts';
import { ALLOWED_BY_DEFAULT } from './mcp-allow.rules.ts';
import { ModelClient, type ModelClientFlags, type ModelClientOptions } from './model-client.ts';
import { PlatformTools } from './platform-tools.ts';

/** Maximum tunnels requested from the platform. The platform's tool returns no more at once. */
const PLATFORM_TUNNELS_MAX = 100;

export interface LocalHostFlags extends ModelClientFlags {
  readonly api?: string;
}

export interface LocalHostOptions extends Omit<ModelClientOptions, 'flags' | 'allow'> {
  readonly flags: LocalHostFlags;
  /** Returns the allowed targets, or null if the user has set none. */
  readonly allow: () => readonly string[] | null;
}

/** Implements the tools. The list of tools is missing, because the server knows the list before this class is loaded. */
export class LocalHost implements Omit<ToolHost, 'tools'> {
  readonly #flags: LocalHostFlags;
  readonly #io: Io;
  readonly #allow: () => readonly string[];
  readonly #client: ModelClient;

  constructor(options: LocalHostOptions) {
    this.#flags = options.flags;
    this.#io = options.io;
    this.#allow = () => options.allow() ?? ALLOWED_BY_DEFAULT;
    this.#client = new ModelClient({ ...options, allow: this.#allow });
  }

  listTunnels: ToolHost['listTunnels'] = ({ state, limit }, call) =>
    inWords(call, async () => {
      if (state === 'active') return this.#listLive(limit, call);
      // Requests one tunnel more than shown, to find out whether there are more. A full page of maximum size counts as truncated.
      const query = { state: 'closed', limit: Math.min(limit + 1, TUNNEL_LOG_LIMIT.max) } as const;
      const tunnels = await this.#platform(call, (client) => client.tunnels(query));
      const truncated = tunnels.length > limit || tunnels.length === TUNNEL_LOG_LIMIT.max;
      return { tunnels: tunnels.slice(0, limit), truncated };
    });

  getTunnel: ToolHost['getTunnel'] = (tunnel, call) =>
    inWords(call, async () => {
      const id = await this.#idOf(tunnel, call);
      try {
        return await this.#ask<ShownTunnel>(call, {
          edge: (edge) => edge.get(id, call.signal),
          platform: (platform) => platform.get(id, call.signal),
        });
      } catch (error) {
        // The tunnel has ended or belongs to another edge. The platform still knows the tunnel.
        if (!isUnknown(error) || !new LoginFile(this.#io).exists()) throw error;
      }
      return this.#platform(call, (client) => client.tunnel(id));
    });

  closeTunnel: ToolHost['closeTunnel'] = (tunnel, call) =>
    inWords(call, async () => {
      const own = this.#client.find(tunnel);
      const tunnel_id = own?.tunnel?.tunnelId ?? (await this.#idOf(tunnel, call));
      if (own !== undefined) await this.#client.close(own.name);
      else {
        await this.#ask(call, {
          edge: (edge) => edge.close(tunnel_id, call.signal),
          platform: (platform) => platform.close(tunnel_id, call.signal),
        });
      }
      return { tunnel_id };
    });

  listRequests: ToolHost['listRequests'] = (tunnel, call) =>
    inWords(call, async () => {
      const id = await this.#idOf(tunnel, call);
      return this.#ask<Awaited<ReturnType<ToolHost['listRequests']>>>(call, {
        edge: (edge) => edge.requests(id, CAPTURES_KEPT_MAX, call.signal),
        platform: (platform) => platform.requests(id, call.signal),
      });
    });

  getRequest: ToolHost['getRequest'] = (tunnel, requestId, call) =>
    inWords(call, async () => {
      const id = await this.#idOf(tunnel, call);
      return this.#ask(call, {
        edge: (edge) => edge.request(id, requestId, call.signal),
        platform: (platform) => platform.request(id, requestId, call.signal),
      });
    });

  replayRequest: ToolHost['replayRequest'] = (tunnel, requestId, call) =>
    inWords(call, async () => {
      const id = await this.#idOf(tunnel, call);
      return this.#ask<Awaited<ReturnType<ToolHost['replayRequest']>>>(call, {
        edge: (edge) => edge.replay(id, requestId, call.signal),
        platform: (platform) => platform.replay(id, requestId, call.signal),
        isOnce: true,
      });
    });

  waitForRequest(
    tunnel: string,
    filter: RequestFilter,
    withinMs: number,
    call: ToolCall,
  ): Promise<CapturedRequest | null> {
    return inWords(call, async () => {
      const tunnelId = await this.#idOf(tunnel, call);
      const { method, path_contains: pathContains } = filter;
      return this.#ask(call, {
        edge: (edge) => awaitRequest(edge, { tunnelId, method, pathContains, withinMs }, call.signal, this.#io),
        platform: (platform) => platform.next(tunnelId, filter, withinMs, call.signal),
      });
    });
  }

  listPools: ToolHost['listPools'] = (call) =>
    inWords(call, () =>
      this.#ask(call, {
        edge: async () => {
          const { groups } = await readGroups(edgeSource(this.#flags, this.#io), call.signal);
          return { groups: [...groups], warnings: [] };
        },
        platform: (platform) => platform.pools(call.signal),
      }),
    );

  getStatus(call: ToolCall): Promise<HostStatus> {
    return inWords(call, () =>
      hostStatus({
        io: this.#io,
        running: this.#client.running,
        allow: this.#allow(),
        edge: () => this.#edge().status(call.signal),
        edgeUrl: () => edgeSource(this.#flags, this.#io).address.url.href,
        account: (ask) => this.#platform(call, ask),
      }),
    );
  }

  getUsage(days: number | undefined, call: ToolCall): Promise<HostUsage> {
    return inWords(call, async () => {
      const [summary, chart] = await this.#platform(call, (client) =>
        Promise.all([client.usage(), client.usageChart({ days: days ?? CHART_DAYS.default })]),
      );
      return { summary, days: chart };
    });
  }

  listKeys: ToolHost['listKeys'] = (call) => inWords(call, () => this.#platform(call, (client) => client.keys()));

  openTunnel(input: OpenTunnelInput, call: ToolCall): Promise<OpenedTunnel> {
    return inWords(call, () => this.#client.open(input, call));
  }

  runDoctor(call: ToolCall): Promise<Readonly<Record<string, unknown>>> {
    return inWords(call, async () => {
      const onBegin = (id: string, done: number, total: number): void => call.progress(done, total, id);
      return examinedFields(
        await collectDiagnostics(this.#flags, this.#io, { bandwidth: true, signal: call.signal, onBegin }),
      );
    });
  }

  /** Closes all tunnels. Called when no tool call is in progress. */
  close(): Promise<void> {
    return this.#client.closeAll();
  }

  #listLive(limit: number, call: ToolCall): ReturnType<ToolHost['listTunnels']> {
    return this.#ask<Awaited<ReturnType<ToolHost['listTunnels']>>>(call, {
      edge: async (edge) => {
        const tunnels = await edge.list(call.signal);
        return { tunnels: tunnels.slice(0, limit), truncated: tunnels.length > limit };
      },
      platform: (platform) => platform.list(Math.min(limit, PLATFORM_TUNNELS_MAX), call.signal),
    });
  }

  /**
   * Calls the edge or the platform, depending on which is in reach. The REST API of an edge is in reach on the edge's own computer, or at
   * a configured address. From elsewhere, the platform responds with its data about all regions. A connected client has received the
   * platform's address from its edge. A client that is not connected connects only if the edge's REST API fails.
   */
  async #ask<T>(call: ToolCall, { edge, platform, isOnce = false }: Answerers<T>): Promise<T> {
    const { isNamed, address, ...holder } = keyHolder(this.#flags, this.#io);
    const askEdge = async (): Promise<T> => edge(new EdgeTunnels({ ...holder, address: address() }));
    if (isNamed) return askEdge();
    const askPlatform = async (): Promise<T> => {
      const url = await this.#client.platformUrl(call);
      if (url === null) throw noPlatform();
      return platform(new PlatformTools(url, holder));
    };
    const [first, second] = this.#client.running === null ? [askEdge, askPlatform] : [askPlatform, askEdge];
    try {
      return await first();
    } catch (error) {
      if (call.signal.aborted || !mayFallBack(error, isOnce)) throw error;
      return second().catch((later: unknown) => {
        throw likelierError(error, later);
      });
    }
  }

  #edge(): EdgeTunnels {
    return new EdgeTunnels(edgeSource(this.#flags, this.#io));
  }

  #platform<T>(call: ToolCall, ask: (client: PlatformClient) => Promise<T>): Promise<T> {
    return unlessAborted(PlatformLogin.open(this.#io, this.#flags).call(ask), call.signal);
  }

  /**
   * Returns the id of a tunnel. An id is used unchanged, because the requests of an ended tunnel are kept for a while. A name is looked
   * up among live tunnels.
   */
  async #idOf(tunnel: string, call: ToolCall): Promise<string> {
    const own = this.#client.find(tunnel)?.tunnel?.tunnelId;
    if (own !== undefined) return own;
    if (TUNNEL_ID.test(tunnel)) return tunnel;
    const { tunnels } = await this.#listLive(ACCOUNT_TUNNELS_MAX, call);
    return onlyOne(tunnels, tunnel).tunnel_id;
  }
}

interface Answerers<T> {
  readonly edge: (edge: EdgeTunnels) => Promise<T>;
  readonly platform: (platform: PlatformTools) => Promise<T>;
  /**
   * True if the call must not be carried out twice. The other side is then called only if the first side cannot have carried out the
   * call.
   */
  readonly isOnce?: boolean;
}

const TUNNEL_ID = /^tun_\w+$/;

const isUnknown = (error: unknown): boolean => error instanceof Fault && error.code === 'TUNNEL_UNKNOWN';

const onlyOne = (tunnels: readonly ShownTunnel[], wanted: string): Pick<ShownTunnel, 'tunnel_id'> => {
  try {
    const choice = chooseTunnel(tunnels, wanted);
    if (choice.kind === 'one') return choice.tunnel;
    throw choice.fault;
  } catch (error) {
    throw error instanceof Fault && error.code === 'CLIENT_TUNNEL_UNKNOWN' ? new Fault('TUNNEL_UNKNOWN') : error;
  }
};

/**
 * Runs a tool call and converts its errors to Faults, including problems of config.yml. An aborted call rejects with the abort's reason.
 */
const inWords = async <T>({ signal }: ToolCall, run: () => Promise<T>): Promise<T> => {
  try {
    signal.throwIfAborted();
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    throw faultOf(error) ?? error;
  }
};
