// The client behind a model's tunnels: connected when the first of them is asked for, or the platform is to be found, known to `tunnel status` from then on, and closed with
// the server. Its tunnels are counted, and end by themselves when they were given a time.

import { protocolTraits, type Tunnel } from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import type { OpenedTunnel, OpenTunnelInput, ToolCall } from '@tunnel/mcp/tools';
import { SingleFlight, type Timer } from '@tunnel/runtime';
import { ownClientsOf } from '../agent/own-clients.ts';
import { loadConfig } from '../config/file.ts';
import type { ConnectionFlags } from '../config/flags.ts';
import { chooseLogger, resolveSettings } from '../config/settings.ts';
import { type Io, VERSION } from '../io/io.ts';
import { fanOut, type Output } from '../output/output.ts';
import { ClientRun, type ClientRunOptions } from '../run/client-run.ts';
import { agentHook } from '../run/hooks/agent.ts';
import { nameOf, type RunningTunnel, type TunnelRun } from '../run/hooks/running-client.ts';
import { MCP_DRAIN_MS, MCP_TUNNELS_MAX } from './limits.ts';
import { type WantedTunnel, wantedTunnel } from './wanted-tunnel.ts';

/** the answer of the edge to a tunnel that a model asked for; then it is given up */
const MCP_OPEN_TIMEOUT_MS = 30_000;

export type ModelClientFlags = Omit<ConnectionFlags, 'json' | 'wait' | 'drainSecs'> & { readonly logFile?: string };

export interface ModelClientOptions {
  readonly flags: ModelClientFlags;
  readonly io: Io;
  /** What may be opened, as it is written now. */
  readonly allow: () => readonly string[];
  /** Whoever shows or keeps what happens. */
  readonly outputs: readonly Partial<Output>[];
  /** `tunnel stop` means the whole server. */
  readonly onStop: () => void;
}

interface Connected {
  readonly running: ClientRun;
  close(): Promise<void>;
}

export class ModelClient {
  readonly #options: ModelClientOptions;
  readonly #connecting: SingleFlight<Connected>;
  /** Of tunnels that were given a time. */
  readonly #endings = new Map<Tunnel, Timer>();
  #connected: Connected | null = null;

  constructor(options: ModelClientOptions) {
    this.#options = options;
    this.#connecting = new SingleFlight((signal) => this.#connect(signal));
  }

  /** null until it is connected. */
  get running(): ClientRun | null {
    return this.#connected?.running ?? null;
  }

  /** Where the platform of the account is, as the edge says that has taken our key; null: it says nothing. */
  async platformUrl({ signal }: ToolCall): Promise<string | null> {
    const { running } = this.#connected ?? (await this.#connecting.run(signal));
    return running.client?.session?.dashboardUrl?.replace(/\/app\/?$/, '') ?? null;
  }

  /** By its id or its name. */
  find(tunnel: string): RunningTunnel | undefined {
    const own = this.running?.tunnels ?? [];
    return own.find((entry) => entry.tunnel?.tunnelId === tunnel) ?? own.find(({ name }) => name === tunnel);
  }

  async open(input: OpenTunnelInput, { signal }: ToolCall): Promise<OpenedTunnel> {
    const { io, allow } = this.#options;
    const wanted = wantedTunnel(input, allow(), io);
    const { running } = this.#connected ?? (await this.#connecting.run(signal));
    // From here to the asking nothing waits: who comes at the same time counts, too.
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

  /** Settles when the edge has confirmed it. */
  async close(name: string): Promise<void> {
    await this.running?.remove(name, 'removed');
  }

  /** Visitors that are being served have a moment. */
  async closeAll(): Promise<void> {
    await this.#connected?.close();
  }

  #refuseOverLimit(running: ClientRun): void {
    const limit = MCP_TUNNELS_MAX;
    const own = running.tunnels.filter(({ source, state }) => source === 'mcp' && state !== 'closing');
    if (own.length >= limit) throw new Fault('MCP_TUNNEL_LIMIT', { limit });
  }

  /** Nobody waits for it any more: it is not to open behind their back. */
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
      // What was refused has left nothing; its name may be that of another, which stays.
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

  /** By what there is, and not by the name that has ended: the next tunnel may have it already. */
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
    // Nothing is kept for a later run: with the server all of them end.
    const { stateDir: _, ...where } = settings;
    const client = await io.connect({
      ...where,
      signal,
      clock: io.clock,
      logger: chooseLogger(io),
      ownClients: ownClientsOf(io),
      agent: `tunnel/${VERSION} mcp node/${process.versions.node}`,
      onStatus: (event) => {
        running.onStatus(event);
        output.onStatus(event);
        // One that was open and is over: its name is free, and it counts no more.
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
    // The caller that waited for the tunnel has gone, and the next caller may open its own: this one would never be closed.
    if (signal.aborted) {
      await connected.close();
      signal.throwIfAborted();
    }
    // The key was revoked, or the edge refuses it now: the next tunnel tries anew.
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

/** Two tunnels to one port differ by a number, unless the model gave them names. */
const freeName = ({ spec, isNamed }: WantedTunnel, running: ClientRun): string => {
  const name = nameOf(spec);
  const taken = new Set(running.tunnels.filter(({ state }) => state !== 'closing').map((entry) => entry.name));
  if (isNamed || !taken.has(name)) return name;
  let number = 2;
  while (taken.has(`${name}-${number}`)) number += 1;
  return `${name}-${number}`;
};

/** Requests are seen from the first tunnel on that carries any. */
const watchRequests = (output: Output): ClientRunOptions['watchRequests'] => {
  let inspector: Promise<string | null> | null = null;
  return (client, { proto }) => {
    if (inspector === null && protocolTraits(proto).carriesRequests) {
      client.onRequest((event) => output.onRequest(event));
      inspector = client.openInspector().then((opened) => opened?.url ?? null);
    }
    return inspector ?? Promise.resolve(null);
  };
};
