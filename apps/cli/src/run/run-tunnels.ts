// The course of every connecting command: connect, open the tunnels, show events, and end with the right exit code.
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
import { EXIT, type ExitCode, exitCodeOf } from '../io/exit-codes.ts';
import { type Io, VERSION } from '../io/io.ts';
import { listenForStops, type Stop } from '../io/until-stopped.ts';
import { jsonOutput } from '../output/json.ts';
import { LiveOutput } from '../output/live.ts';
import { fanOut, type Output, showRequests } from '../output/output.ts';
import { runLines } from '../output/run-lines.ts';
import { neverWaiting } from '../output/terminal.ts';
import { ClientRun } from './client-run.ts';
import { createHooks } from './hooks/hooks.ts';
import type { RunningClient, TunnelRun } from './hooks/running-client.ts';

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
  const watch = new RequestWatch(plan.flags, output, async (request) =>
    (await import('./replay-kept.ts')).replayKept(plan, io)(request),
  );
  return new ClientRun({
    plan,
    output,
    since: io.clock.now(),
    stop: () => stop.ask(),
    watchRequests: (client, spec) => watch.before(client, spec),
  });
};

/**
 * Reloads the config file on SIGHUP. The signal is handled even without a config file: a closed terminal, or a service manager that
 * reloads the client, must not end the tunnels.
 */
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
  // The user stopped the run before the client was connected.
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

/** Returns true for the final error of a tunnel or peer connection that the run was started with. */
const isEndOf = (event: StatusEvent, running: ClientRun): event is RefusalEvent =>
  (event.type === 'tunnel-error' || event.type === 'peer-error') &&
  event.final &&
  running.endsRun(event.type === 'tunnel-error' ? event.tunnel.name : event.connection.name);

/**
 * Observes requests, beginning with the first tunnel that carries requests. The inspector opens before the tunnel, so that the tunnel's
 * event can name the inspector's URL.
 */
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
      if (!this.#isWatching && this.#flags.quiet !== true) showRequests(client, this.#output);
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
      logger: io.logger,
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

/**
 * Resolves when the run ends: on the user's request, or after the last tunnel of the start has ended and no other tunnel is open. Rejects
 * with the client's fault.
 */
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
      // The client itself has closed with a fault. This fault is the reason for the end, not the connections closed with the client.
      if (client.state === 'closed') return;
      if (client.tunnels.length + client.peerConnections.length > 0) return;
      // A tunnel closed by the edge can still have visitors.
      drain().then(() => resolve(codeWhenEmpty()), reject);
    });
  });

/**
 * Returns the exit code for rejected tunnels. An account closed to traffic rejects every tunnel, so the exit code names the account
 * instead of the tunnels. A usage error, such as a local port in use, also takes precedence.
 */
const codeOfRefusals = (refusals: readonly Fault[]): ExitCode =>
  [EXIT.accountClosed, EXIT.usage].find((code) => refusals.some((fault) => exitCodeOf(fault) === code)) ??
  EXIT.tunnelsRefused;

const chooseOutput = ({ settings, flags, readyFields }: TunnelRun, io: Io): Output => {
  if (flags.json === true) return jsonOutput(io, readyFields);
  // A terminal without cursor movement (TERM=dumb) gets plain lines, like a pipe.
  const isLive = io.stdout.isTTY === true && io.env['TERM'] !== 'dumb';
  if (!isLive) return runLines(io);
  const { clock, env, platformUrl } = io;
  const terminal = { stdout: neverWaiting(io.stdout), stderr: neverWaiting(io.stderr) };
  return new LiveOutput({ ...terminal, clock, env, platformUrl }, settings.server);
};
