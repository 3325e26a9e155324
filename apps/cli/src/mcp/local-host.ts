// The tools' host on this machine: tunnels opened in this process, everything else asked of the edge by the API key, or of the platform by
// `tunnel login`. Keys and addresses are looked up at each call: who logs in meanwhile need not start the server again.
import { ALLOWED_BY_DEFAULT } from '@tunnel/client';
import {
  CAPTURE_LIST_LIMIT,
  type CapturedRequest,
  CHART_DAYS,
  type EdgeTunnel,
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
  ToolCall,
  ToolHost,
} from '@tunnel/mcp-tools';
import { edgeSource } from '../api/account-tunnels.ts';
import { awaitRequest } from '../api/await-request.ts';
import { readGroups } from '../api/edge-api.ts';
import { EdgeTunnels } from '../api/edge-tunnels.ts';
import { LoginFile } from '../api/login-file.ts';
import { PlatformLogin } from '../api/platform-login.ts';
import { chooseTunnel } from '../choose-tunnel.ts';
import { examinedFields, examineSetup } from '../examine-setup.ts';
import type { Io } from '../io.ts';
import { faultOf } from '../problem-report.ts';
import { hostStatus } from './host-status.ts';
import { ModelClient, type ModelClientDeps, type ModelClientFlags } from './model-client.ts';

export interface LocalHostFlags extends ModelClientFlags {
  readonly api?: string;
}

export interface LocalHostDeps extends Omit<ModelClientDeps, 'flags' | 'allow'> {
  readonly flags: LocalHostFlags;
  /** null: nobody has said anything. */
  readonly allow: () => readonly string[] | null;
}

/** All but the list of tools, which is known before this is loaded. */
export class LocalHost implements Omit<ToolHost, 'tools'> {
  readonly #flags: LocalHostFlags;
  readonly #io: Io;
  readonly #allow: () => readonly string[];
  readonly #client: ModelClient;

  constructor(deps: LocalHostDeps) {
    this.#flags = deps.flags;
    this.#io = deps.io;
    this.#allow = () => deps.allow() ?? ALLOWED_BY_DEFAULT;
    this.#client = new ModelClient({ ...deps, allow: this.#allow });
  }

  listTunnels: ToolHost['listTunnels'] = ({ state, limit }, call) =>
    inWords(call, async () => {
      if (state === 'active') {
        const tunnels = await this.#edge().list(call.signal);
        return { tunnels: tunnels.slice(0, limit), truncated: tunnels.length > limit };
      }
      // One more than are shown: then there are more. A whole page says as much as it can.
      const query = { state: 'closed', limit: Math.min(limit + 1, TUNNEL_LOG_LIMIT.max) } as const;
      const tunnels = await this.#platform(call, (client) => client.tunnels(query));
      const truncated = tunnels.length > limit || tunnels.length === TUNNEL_LOG_LIMIT.max;
      return { tunnels: tunnels.slice(0, limit), truncated };
    });

  getTunnel: ToolHost['getTunnel'] = (tunnel, call) =>
    inWords(call, async () => {
      const id = await this.#idOf(tunnel, call);
      try {
        return await this.#edge().get(id, call.signal);
      } catch (error) {
        // One that has ended, or lives elsewhere: the platform knows it.
        if (!isUnknown(error) || !new LoginFile(this.#io).exists()) throw error;
      }
      return this.#platform(call, (client) => client.tunnel(id));
    });

  closeTunnel: ToolHost['closeTunnel'] = (tunnel, call) =>
    inWords(call, async () => {
      const own = this.#client.find(tunnel);
      const tunnel_id = own?.tunnel?.tunnelId ?? (await this.#idOf(tunnel, call));
      if (own === undefined) await this.#edge().close(tunnel_id, call.signal);
      else await this.#client.close(own.name);
      return { tunnel_id };
    });

  listRequests: ToolHost['listRequests'] = (tunnel, call) =>
    inWords(call, async () =>
      this.#edge().requests(await this.#idOf(tunnel, call), CAPTURE_LIST_LIMIT.max, call.signal),
    );

  getRequest: ToolHost['getRequest'] = (tunnel, requestId, call) =>
    inWords(call, async () => this.#edge().request(await this.#idOf(tunnel, call), requestId, call.signal));

  replayRequest: ToolHost['replayRequest'] = (tunnel, requestId, call) =>
    inWords(call, async () => this.#edge().replay(await this.#idOf(tunnel, call), requestId, call.signal));

  waitForRequest(
    tunnel: string,
    filter: RequestFilter,
    withinMs: number,
    call: ToolCall,
  ): Promise<CapturedRequest | null> {
    return inWords(call, async () => {
      const tunnelId = await this.#idOf(tunnel, call);
      const { method, path_contains: pathContains } = filter;
      return awaitRequest(this.#edge(), { tunnelId, method, pathContains, withinMs }, call.signal, this.#io);
    });
  }

  listPools: ToolHost['listPools'] = (call) =>
    inWords(call, async () => {
      const { groups } = await readGroups(edgeSource(this.#flags, this.#io), call.signal);
      return { groups: [...groups], warnings: [] };
    });

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
        await examineSetup(this.#flags, this.#io, { bandwidth: true, signal: call.signal, onBegin }),
      );
    });
  }

  /** No call is under way any more. */
  close(): Promise<void> {
    return this.#client.closeAll();
  }

  #edge(): EdgeTunnels {
    return new EdgeTunnels(edgeSource(this.#flags, this.#io));
  }

  #platform<T>(call: ToolCall, ask: (client: PlatformClient) => Promise<T>): Promise<T> {
    return unlessAborted(PlatformLogin.open(this.#io, this.#flags).call(ask), call.signal);
  }

  /** An id as it is: of a tunnel that has ended, requests are kept for a while. A name is looked up among those that live. */
  async #idOf(tunnel: string, { signal }: ToolCall): Promise<string> {
    const own = this.#client.find(tunnel)?.tunnel?.tunnelId;
    if (own !== undefined) return own;
    if (TUNNEL_ID.test(tunnel)) return tunnel;
    return onlyOne(await this.#edge().list(signal), tunnel).tunnel_id;
  }
}

const TUNNEL_ID = /^tun_\w+$/;

const isUnknown = (error: unknown): boolean => error instanceof Fault && error.code === 'TUNNEL_UNKNOWN';

const onlyOne = (tunnels: readonly EdgeTunnel[], wanted: string): Pick<EdgeTunnel, 'tunnel_id'> => {
  try {
    const choice = chooseTunnel(tunnels, wanted);
    if (choice.kind === 'one') return choice.tunnel;
    throw choice.fault;
  } catch (error) {
    throw error instanceof Fault && error.code === 'CLIENT_TUNNEL_UNKNOWN' ? new Fault('TUNNEL_UNKNOWN') : error;
  }
};

/** Whatever refuses does so with a Fault: problems of config.yml have words, too. A call that is over needs none. */
const inWords = async <T>({ signal }: ToolCall, run: () => Promise<T>): Promise<T> => {
  try {
    signal.throwIfAborted();
    return await run();
  } catch (error) {
    signal.throwIfAborted();
    throw faultOf(error) ?? error;
  }
};

/** What cannot be ended is not waited for. */
const unlessAborted = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason as Error);
    signal.addEventListener('abort', leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
