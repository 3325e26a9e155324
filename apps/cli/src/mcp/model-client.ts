// The client for a model's tunnels. Connects when the first tunnel is requested, or when the platform's address is needed. Afterwards the
// client is listed by `tunnel status`, and closes with the MCP server. The number of tunnels is limited, and a tunnel with a time to live
// closes automatically.

import { protocolTraits, type Tunnel } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { OpenedTunnel, OpenTunnelInput, ToolCall } from '@tunnel/mcp/tools';
import { SingleFlight, type Timer } from '@tunnel/runtime';
import { ownClientsOf } from '../agent/own-clients.ts';
import { loadConfig } from '../config/file.ts';
import type { ConnectionFlags } from '../config/flags.ts';
import { resolveSettings } from '../config/settings.ts';
import { type Io, VERSION } from '../io/io.ts';
import { fanOut, type Output, showRequests } from '../output/output.ts';
import { ClientRun, type ClientRunOptions } from '../run/client-run.ts';
import { agentHook } from '../run/hooks/agent.ts';
import { nameOf, type RunningTunnel, type TunnelRun } from '../run/hooks/running-client.ts';
import { MCP_DRAIN_MS, MCP_TUNNELS_MAX } from './limits.ts';
import { type WantedTunnel, wantedTunnel } from './wanted-tunnel.ts';

/** Timeout for the edge's response to a tunnel requested by a model. Afterwards the tunnel is given up. */
const MCP_OPEN_TIMEOUT_MS = 30_000;

export type ModelClientFlags = Omit<ConnectionFlags, 'json' | 'wait' | 'drainSecs'> & { readonly logFile?: string };

export interface ModelClientOptions {
  readonly flags: ModelClientFlags;
  readonly io: Io;
  /** Returns the local targets that the model may currently publish. */
  readonly allow: () => readonly string[];
  /** Outputs that show or log events of the client. */
  readonly outputs: readonly Partial<Output>[];
  /** Called for `tunnel stop`, which stops the whole MCP server. */
  readonly onStop: () => void;
}

interface Connected {
  readonly running: ClientRun;
  close(): Promise<void>;
}

export class ModelClient {
  readonly #options: ModelClientOptions;
  readonly #connecting: SingleFlight<Connected>;
  /** Timers that close tunnels with a time to live. */
  readonly #endings = new Map<Tunnel, Timer>();
  #connected: Connected | null = null;

  constructor(options: ModelClientOptions) {
    this.#options = options;
    this.#connecting = new SingleFlight((signal) => this.#connect(signal));
  }

  /** The running client of `tunnel mcp`. Null until it is connected. */
  get running(): ClientRun | null {
    return this.#connected?.running ?? null;
  }

  /**
   * Returns the URL of the account's platform, as reported by the edge that has accepted the API key. Returns null if the edge reports no
   * platform.
   */
  async platformUrl({ signal }: ToolCall): Promise<string | null> {
    const { running } = this.#connected ?? (await this.#connecting.run(signal));
    return running.client?.session?.dashboardUrl?.replace(/\/app\/?$/, '') ?? null;
  }

  /** Finds a tunnel by id or by name. */
  find(tunnel: string): RunningTunnel | undefined {
    const own = this.running?.tunnels ?? [];
    return own.find((entry) => entry.tunnel?.tunnelId === tunnel) ?? own.find(({ name }) => name === tunnel);
  }

  async open(input: OpenTunnelInput, { signal }: ToolCall): Promise<OpenedTunnel> {
    const { io, allow } = this.#options;
    const wanted = wantedTunnel(input, allow(), io);
    const { running } = this.#connected ?? (await this.#connecting.run(signal));
    // There is no `await` between this check and the request, so that simultaneous calls count toward the limit.
    this.#refuseOverLimit(running);
    const spec = { ...wanted.spec, name: freeName(wanted, running) };
    const tunnel = await this.#answeredInTime(running.open(spec, 'mcp'), spec.name, running, signal);
    if (input.ttl_secs !== undefined) this.#endAfter(input.ttl_secs, tunnel, running);
    return {
      name: tunnel.name,
      tunnel_id: tunnel.tunnelId,
      protocol: tunnel.protocol,
      public_url: tunnel.publicUrl,
      local: tunnel.local,
      inspect_url: protocolTraits(tunnel.protocol).carriesRequests ? running.inspectUrl : null,
      warnings: tunnel.warnings,
    };
  }

  /** Closes a tunnel. Resolves when the edge has confirmed the end of the tunnel. */
  async close(name: string): Promise<void> {
    await this.running?.remove(name, 'removed');
  }

  /** Closes the client with all tunnels. Current visitors have a moment to finish. */
  async closeAll(): Promise<void> {
    await this.#connected?.close();
  }

  #refuseOverLimit(running: ClientRun): void {
    const limit = MCP_TUNNELS_MAX;
    const own = running.tunnels.filter(({ source, state }) => source === 'mcp' && state !== 'closing');
    if (own.length >= limit) throw new Fault('MCP_TUNNEL_LIMIT', { limit });
  }

  /**
   * Waits for the edge's response to a tunnel. After a timeout or an aborted call, the tunnel is removed, because a tunnel without a
   * waiting caller must not open.
   */
  async #answeredInTime(
    opening: Promise<Tunnel>,
    name: string,
    running: ClientRun,
    signal: AbortSignal,
  ): Promise<Tunnel> {
    const withinMs = MCP_OPEN_TIMEOUT_MS;
    const { server } = running.plan.settings;
    let timer: Timer | undefined;
    let leave = (): void => {};
    let wasRefused = false;
    opening.catch(() => {
      wasRefused = true;
    });
    const givenUp = new Promise<never>((_resolve, reject) => {
      const reason = `no response within ${withinMs / 1000} s`;
      const late = (): void => reject(new Fault('CLIENT_SERVER_UNREACHABLE', { server, reason }));
      timer = this.#options.io.clock.setTimeout(late, withinMs);
      leave = () => reject(signal.reason as Error);
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) leave();
    });
    try {
      return await Promise.race([opening, givenUp]);
    } catch (error) {
      // A rejected tunnel has left nothing to remove, and its name may belong to another tunnel that must stay open.
      if (!wasRefused) void running.remove(name, 'removed');
      throw error;
    } finally {
      timer?.cancel();
      signal.removeEventListener('abort', leave);
    }
  }

  #endAfter(seconds: number, tunnel: Tunnel, running: ClientRun): void {
    const end = (): void => void running.remove(tunnel.name, 'removed');
    this.#endings.set(tunnel, this.#options.io.clock.setTimeout(end, seconds * 1000));
  }

  /**
   * Cancels the timers of closed tunnels. Compares tunnels instead of names, because the next tunnel may already have the name of a
   * closed tunnel.
   */
  #forgetEndings(running: ClientRun): void {
    const open = new Set(running.tunnels.flatMap(({ state, tunnel }) => (state === 'closing' ? [] : (tunnel ?? []))));
    for (const [tunnel, timer] of this.#endings) {
      if (open.has(tunnel)) continue;
      timer.cancel();
      this.#endings.delete(tunnel);
    }
  }

  async #connect(signal: AbortSignal): Promise<Connected> {
    const { flags, io, outputs, onStop } = this.#options;
    const config = loadConfig(flags.config, io);
    const settings = resolveSettings(flags, config, io);
    const plan = planWithoutTunnels(settings, config?.path ?? null);
    const agent = agentHook(plan, io);
    const output = fanOut([
      ...outputs,
      ...(agent?.output === undefined ? [] : [agent.output]),
      { onRemoved: () => this.#forgetEndings(running) },
    ]);
    const running: ClientRun = new ClientRun({
      plan,
      output,
      since: io.clock.now(),
      stop: onStop,
      watchRequests: watchRequests(output),
    });
    // Connects without a state folder, because all tunnels end with the server, and a later run does not resume any tunnel.
    const { stateDir: _, ...where } = settings;
    const client = await io.connect({
      ...where,
      signal,
      clock: io.clock,
      logger: io.logger,
      ownClients: ownClientsOf(io),
      agent: `tunnel/${VERSION} mcp node/${process.versions.node}`,
      onStatus: (event) => {
        running.onStatus(event);
        output.onStatus(event);
        // An open tunnel has ended. Its removal frees the name, and the tunnel no longer counts toward the limit.
        const isOver = event.type === 'tunnel-error' && event.final && event.tunnel.tunnelId !== '';
        if (isOver) void running.remove(event.tunnel.name, 'removed');
      },
    });
    output.onClient(client);
    await running.connected(client);
    await agent?.onRunning?.(running);
    const connected: Connected = {
      running,
      close: async () => {
        await client.close({ drainMs: MCP_DRAIN_MS });
        await agent?.close?.();
      },
    };
    // The caller that waited for the client has gone, and the next caller may connect another client. This client would never be closed.
    if (signal.aborted) {
      await connected.close();
      signal.throwIfAborted();
    }
    // The API key was revoked, or the edge now rejects the key. The next tunnel connects a new client.
    void client.closed.then(() => {
      for (const timer of this.#endings.values()) timer.cancel();
      this.#endings.clear();
      if (this.#connected === connected) this.#connected = null;
      return agent?.close?.();
    });
    this.#connected = connected;
    return connected;
  }
}

const planWithoutTunnels = (settings: TunnelRun['settings'], config: string | null): TunnelRun => ({
  settings,
  flags: { drainSecs: MCP_DRAIN_MS / 1000 },
  stateKey: 'mcp',
  config,
  source: 'mcp',
  tunnels: [],
});

/** Returns a free name for a tunnel. Two tunnels to the same port get different numbers, unless the model has named the tunnels. */
const freeName = ({ spec, isNamed }: WantedTunnel, running: ClientRun): string => {
  const name = nameOf(spec);
  const taken = new Set(running.tunnels.filter(({ state }) => state !== 'closing').map((entry) => entry.name));
  if (isNamed || !taken.has(name)) return name;
  let number = 2;
  while (taken.has(`${name}-${number}`)) number += 1;
  return `${name}-${number}`;
};

/** Creates the observer of requests, which starts with the first tunnel that carries requests. */
const watchRequests = (output: Output): ClientRunOptions['watchRequests'] => {
  let inspector: Promise<string | null> | null = null;
  return (client, { proto }) => {
    if (inspector === null && protocolTraits(proto).carriesRequests) {
      showRequests(client, output);
      inspector = client.openInspector().then((opened) => opened?.url ?? null);
    }
    return inspector ?? Promise.resolve(null);
  };
};
