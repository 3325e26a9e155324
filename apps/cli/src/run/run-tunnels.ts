// What every connecting command does: connect, open the tunnels, show what happens, and end for the right reason.
import {
  type Client,
  type ClientSpec,
  checkPeerOptions,
  checkTunnelSpec,
  type InspectorOptions,
  protocolTraits,
  type StatusEvent,
  type Tunnel,
} from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { ownClientsOf } from '../agent/own-clients.ts';
import { chooseLogger } from '../config/settings.ts';
import { EXIT, type ExitCode, exitCodeOf } from '../io/exit-codes.ts';
import { type Io, VERSION } from '../io/io.ts';
import { listenForStops, type Stop } from '../io/until-stopped.ts';
import { jsonOutput } from '../output/json.ts';
import { LiveOutput } from '../output/live.ts';
import { fanOut, type Output } from '../output/output.ts';
import { runLines } from '../output/run-lines.ts';
import { ClientRun } from './client-run.ts';
import { createHooks } from './hooks/hooks.ts';
import type { RunningClient, TunnelRun } from './hooks/running-client.ts';
import { replayKept } from './replay-kept.ts';

export const runTunnels = async (plan: TunnelRun, io: Io): Promise<ExitCode> => {
  for (const spec of plan.tunnels) checkTunnelSpec(spec);
  for (const peer of plan.peers ?? []) checkPeerOptions(peer);
  const hooks = [...createHooks(plan, io), ...(plan.hooks ?? [])];
  const output = fanOut([chooseOutput(plan, io), ...hooks.flatMap((hook) => hook.output ?? [])]);
  const opened = new Set<Tunnel>();
  const stop = listenForStops(io);
  const running = makeRunning(plan, io, output, stop);
  reloadAtSighup(running, io);
  try {
    for (const hook of hooks) await hook.onRunning?.(running);
    const code = await Promise.race([runClient(running, io, output, opened, stop), stop.atOnce]);
    output.onEnd(code, [...opened]);
    return code;
  } catch (error) {
    const fault = Fault.from(error);
    if (fault.code === 'INTERNAL' && fault.cause !== undefined) {
      output.onEnd(EXIT.unexpected, []);
      throw error;
    }
    output.onFailure(fault);
    output.onEnd(exitCodeOf(fault), [...opened]);
    return exitCodeOf(fault);
  } finally {
    for (const hook of hooks) await hook.close?.();
  }
};

const makeRunning = (plan: TunnelRun, io: Io, output: Output, stop: Stop): ClientRun => {
  const watch = new RequestWatch(plan.flags, output, replayKept(plan, io));
  return new ClientRun({
    plan,
    output,
    since: io.clock.now(),
    stop: () => stop.ask(),
    watchRequests: (client, spec) => watch.before(client, spec),
  });
};

/** Also without a file: a terminal that hangs up, or a service manager that means well, must not end the tunnels. */
const reloadAtSighup = (running: RunningClient, io: Io): void =>
  void io.signals.on('SIGHUP', () => void running.reload?.().catch(() => {}));

const runClient = async (
  running: ClientRun,
  io: Io,
  output: Output,
  opened: Set<Tunnel>,
  stop: Stop,
): Promise<ExitCode> => {
  const { plan } = running;
  const refusals: Fault[] = [];
  const onStatus = (event: StatusEvent): void => {
    running.onStatus(event);
    if (event.type === 'tunnel-opened') opened.add(event.tunnel);
    if (isEndOf(event, running)) refusals.push(event.fault);
    output.onStatus(event);
  };
  const client = await connectClient(plan, io, onStatus, stop.asked);
  // It was told to stop before it was connected.
  if (client === null) return EXIT.endedAsAsked;
  output.onClient(client);
  const ending = untilEnd(client, running, stop.asked, {
    drain: () => {
      output.onDrain(client.openConnections, plan.flags.drainSecs);
      return client.close({ drainMs: plan.flags.drainSecs * 1000 });
    },
    codeWhenEmpty: () => codeOfRefusals(refusals),
  });
  await running.connected(client);
  return ending;
};

type RefusalEvent = Extract<StatusEvent, { type: 'tunnel-error' | 'peer-error' }>;

/** The end of one that the run was started for. */
const isEndOf = (event: StatusEvent, running: ClientRun): event is RefusalEvent =>
  (event.type === 'tunnel-error' || event.type === 'peer-error') &&
  event.final &&
  running.endsRun(event.type === 'tunnel-error' ? event.tunnel.name : event.connection.name);

/** Requests are looked at from the first tunnel on that carries any; its event can name the inspector then. */
class RequestWatch {
  readonly #flags: TunnelRun['flags'];
  readonly #output: Output;
  readonly #replayAtEdge: InspectorOptions['replayAtEdge'];
  #isWatching = false;
  #inspector: Promise<string | null> | null = null;

  constructor(flags: TunnelRun['flags'], output: Output, replayAtEdge: InspectorOptions['replayAtEdge']) {
    this.#flags = flags;
    this.#output = output;
    this.#replayAtEdge = replayAtEdge;
  }

  before(client: Client, { proto, capture }: ClientSpec): Promise<string | null> {
    if (protocolTraits(proto).carriesRequests) {
      if (!this.#isWatching && this.#flags.quiet !== true) client.onRequest((event) => this.#output.onRequest(event));
      this.#isWatching = true;
      if (this.#flags.inspect !== false && capture !== false) this.#inspector ??= this.#openInspector(client);
    }
    return this.#inspector ?? Promise.resolve(null);
  }

  async #openInspector(client: Client): Promise<string | null> {
    const url = (await client.openInspector({ replayAtEdge: this.#replayAtEdge }))?.url ?? null;
    this.#output.onInspector(url);
    return url;
  }
}

const connectClient = async (
  { settings, flags, stateKey }: TunnelRun,
  io: Io,
  onStatus: (event: StatusEvent) => void,
  signal: AbortSignal,
): Promise<Client | null> => {
  try {
    return await io.connect({
      ...settings,
      stateKey,
      wait: flags.wait,
      newNames: flags.newName,
      agent: `tunnel/${VERSION} node/${process.versions.node}`,
      ownClients: ownClientsOf(io),
      logger: chooseLogger(io),
      clock: io.clock,
      signal,
      onStatus,
    });
  } catch (error) {
    if (signal.aborted) return null;
    throw error;
  }
};

interface Ending {
  readonly drain: () => Promise<void>;
  readonly codeWhenEmpty: () => ExitCode;
}

/** Ends as asked, by the client's fault, or when the last tunnel is gone that it was started for, and there is no other. */
const untilEnd = (
  client: Client,
  running: ClientRun,
  asked: AbortSignal,
  { drain, codeWhenEmpty }: Ending,
): Promise<ExitCode> =>
  new Promise((resolve, reject) => {
    const stop = (): void => void drain().then(() => resolve(EXIT.endedAsAsked), reject);
    if (asked.aborted) return stop();
    asked.addEventListener('abort', stop, { once: true });
    void client.closed.then((fault) => fault !== undefined && reject(fault));
    client.onStatus((event) => {
      if (!isEndOf(event, running) || asked.aborted) return;
      // The client itself is over, with a fault of its own: that is the reason, and not the connections that end with it.
      if (client.state === 'closed') return;
      if (client.tunnels.length + client.peerConnections.length > 0) return;
      // A tunnel that was closed at the edge may still have visitors.
      drain().then(() => resolve(codeWhenEmpty()), reject);
    });
  });

/** An account that is closed to traffic says so for each tunnel; that is the reason then, not the tunnels. Nor is it a port of our own. */
const codeOfRefusals = (refusals: readonly Fault[]): ExitCode =>
  [EXIT.accountClosed, EXIT.usage].find((code) => refusals.some((fault) => exitCodeOf(fault) === code)) ??
  EXIT.tunnelsRefused;

const chooseOutput = ({ settings, flags, readyFields }: TunnelRun, io: Io): Output => {
  if (flags.json === true) return jsonOutput(io, readyFields);
  // A terminal without a cursor that moves gets lines, as a pipe does.
  const isLive = io.stdout.isTTY === true && io.env['TERM'] !== 'dumb';
  return isLive ? new LiveOutput(io, settings.server) : runLines(io);
};
