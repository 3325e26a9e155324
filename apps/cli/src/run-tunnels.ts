// What every connecting command does: connect, open the tunnels, show what happens, and end for the right reason.
import {
  type Client,
  type ConnectPeerOptions,
  checkPeerOptions,
  checkTunnelSpec,
  protocolTraits,
  type StatusEvent,
  type Tunnel,
  type TunnelSpec,
} from '@tunnel/client';
import { Fault } from '@tunnel/errors';
import { createLogger, type Logger, onSignals } from '@tunnel/runtime';
import { EXIT, type ExitCode, exitCodeOf, exitCodeOfSignal } from './exit-codes.ts';
import type { ConnectionFlags, RequestFlags } from './flags.ts';
import { type Io, VERSION } from './io.ts';
import { JsonOutput } from './output/json.ts';
import { LineOutput } from './output/lines.ts';
import { LiveOutput } from './output/live.ts';
import type { Output } from './output/output.ts';
import type { ConnectionSettings } from './settings.ts';

export interface TunnelRun {
  readonly settings: ConnectionSettings;
  readonly flags: Pick<ConnectionFlags, 'json' | 'wait' | 'drainSecs'> & Partial<RequestFlags>;
  readonly stateKey: string;
  readonly tunnels: readonly TunnelSpec[];
  /** What others publish. */
  readonly peers?: readonly ConnectPeerOptions[];
}

const SAME_SIGNAL_WITHIN_MS = 1000;

export const runTunnels = async (plan: TunnelRun, io: Io): Promise<ExitCode> => {
  for (const spec of plan.tunnels) checkTunnelSpec(spec);
  for (const peer of plan.peers ?? []) checkPeerOptions(peer);
  const output = chooseOutput(plan, io);
  const opened = new Set<Tunnel>();
  const stop = listenForStop(io);
  try {
    const code = await Promise.race([runClient(plan, io, output, opened, stop), stop.atOnce]);
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
  }
};

interface Stop {
  /** Aborted by the first signal, or when nobody reads our output any more. */
  readonly asked: AbortSignal;
  /** Settles at a second signal. */
  readonly atOnce: Promise<ExitCode>;
}

const listenForStop = (io: Io): Stop => {
  const asked = new AbortController();
  let endAtOnce: (code: ExitCode) => void = () => {};
  const atOnce = new Promise<ExitCode>((resolve) => {
    endAtOnce = resolve;
  });
  onSignals({
    signals: ['SIGINT', 'SIGTERM'],
    sameWithinMs: SAME_SIGNAL_WITHIN_MS,
    onFirst: () => asked.abort(),
    onSecond: (signal) => endAtOnce(exitCodeOfSignal(signal)),
    clock: io.clock,
    source: io.signals,
  });
  void io.stdoutClosed.then(() => asked.abort());
  return { asked: asked.signal, atOnce };
};

const runClient = async (
  plan: TunnelRun,
  io: Io,
  output: Output,
  opened: Set<Tunnel>,
  stop: Stop,
): Promise<ExitCode> => {
  const refusals: Fault[] = [];
  const onStatus = (event: StatusEvent): void => {
    if (event.type === 'tunnel-opened') opened.add(event.tunnel);
    if ((event.type === 'tunnel-error' || event.type === 'peer-error') && event.final) refusals.push(event.fault);
    output.onStatus(event);
  };
  const client = await connectClient(plan, io, onStatus, stop.asked);
  // It was told to stop before it was connected.
  if (client === null) return EXIT.endedAsAsked;
  await watchRequests(client, plan, output);
  const ending = untilEnd(client, stop.asked, {
    drain: () => {
      output.onDrain(client.openConnections, plan.flags.drainSecs);
      return client.close({ drainMs: plan.flags.drainSecs * 1000 });
    },
    codeWhenEmpty: () => codeOfRefusals(refusals),
  });
  // A refusal is told by its event, and by `ending` when it was the last.
  for (const spec of plan.tunnels) client.open(spec).catch(() => {});
  for (const peer of plan.peers ?? []) client.connectPeer(peer).catch(() => {});
  return ending;
};

/** Before the first tunnel opens, so that its first request is seen, and its event can name the inspector. */
const watchRequests = async (client: Client, { flags, tunnels }: TunnelRun, output: Output): Promise<void> => {
  const seen = tunnels.filter(({ protocol }) => protocolTraits(protocol).carriesRequests);
  if (seen.length > 0 && flags.quiet !== true) client.onRequest((event) => output.onRequest(event));
  if (flags.inspect === false || seen.every(({ capture }) => capture === false)) return;
  output.onInspector((await client.openInspector())?.url ?? null);
};

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
      agent: `tunnel/${VERSION} node/${process.versions.node}`,
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

/** Ends as asked, by the client's fault, or when the last tunnel is gone. */
const untilEnd = (client: Client, asked: AbortSignal, { drain, codeWhenEmpty }: Ending): Promise<ExitCode> =>
  new Promise((resolve, reject) => {
    const stop = (): void => void drain().then(() => resolve(EXIT.endedAsAsked), reject);
    if (asked.aborted) return stop();
    asked.addEventListener('abort', stop, { once: true });
    void client.closed.then((fault) => fault !== undefined && reject(fault));
    client.onStatus((event) => {
      if ((event.type !== 'tunnel-error' && event.type !== 'peer-error') || !event.final || asked.aborted) return;
      if (client.tunnels.length + client.peerConnections.length > 0) return;
      // A tunnel that was closed at the edge may still have visitors.
      drain().then(() => resolve(codeWhenEmpty()), reject);
    });
  });

/** An account that is closed to traffic says so for each tunnel; that is the reason then, not the tunnels. Nor is it a port of our own. */
const codeOfRefusals = (refusals: readonly Fault[]): ExitCode =>
  [EXIT.accountClosed, EXIT.usage].find((code) => refusals.some((fault) => exitCodeOf(fault) === code)) ??
  EXIT.tunnelsRefused;

const chooseOutput = ({ settings, flags }: TunnelRun, io: Io): Output => {
  if (flags.json === true) return new JsonOutput(io);
  return io.stdout.isTTY === true ? new LiveOutput(io, settings.server) : new LineOutput(io);
};

const chooseLogger = (io: Io): Logger => {
  const debug = io.env['TUNNEL_DEBUG'] === '1';
  return createLogger({ level: debug ? 'debug' : 'silent', format: 'human', stream: process.stderr });
};
