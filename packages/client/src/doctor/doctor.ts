// The doctor: all checks with their probes in execution order. Facts about files and the account are passed in by the caller.
import { stat } from 'node:fs/promises';
import { type Clock, systemClock } from '@tunnel/runtime';
import { localTargetOf, localText } from '../local/local-target.ts';
import { tcpProbe } from '../local/probe.ts';
import { reasonOf } from '../network/dial-faults.ts';
import { type ConnectOptions, checkOptions } from '../options.ts';
import type { ClientSpec } from '../tunnels/tunnel-spec.ts';
import { type CheckId, type Diagnosis, type Finding, skipped } from './check.rules.ts';
import { judgeCarriers, judgeDns, judgeEdge, judgeKey, judgeProxy, judgeTcp, judgeTls } from './judge-path.rules.ts';
import { judgeBandwidth, judgeLatency, judgeNat, judgeUdp } from './judge-quality.rules.ts';
import {
  type ConfigFacts,
  judgeClock,
  judgeConfig,
  judgeKeyFile,
  judgePlatform,
  judgeTargets,
  type KeyFileFacts,
  type PlatformFacts,
  type TargetFacts,
} from './judge-settings.rules.ts';
import { type Probes, runChecks } from './run-checks.ts';
import { ServerChecks } from './server-checks.ts';

/** Timeout for all checks of the doctor together. */
export const DOCTOR_WITHIN_MS = 20_000;
/** Timeout for the doctor's checks of local services, which run in parallel. */
const DOCTOR_TARGET_WITHIN_MS = 3000;

export interface DoctorOptions {
  readonly config: ConfigFacts;
  readonly keyFile: KeyFileFacts;
  /**
   * Connection options. Null if the config file cannot be read, because the server is unknown then. With an empty key, only checks
   * without a key run.
   */
  readonly connect: ConnectOptions | null;
  readonly tunnels: readonly ClientSpec[];
  readonly platform: (signal: AbortSignal) => Promise<PlatformFacts>;
  /** False skips the bandwidth check, which sends large amounts of data. */
  readonly bandwidth: boolean;
  readonly onBegin?: ((id: CheckId, done: number, total: number) => void) | undefined;
  /** Aborts the run. The remaining checks report that they were not run. */
  readonly signal?: AbortSignal | undefined;
}

/** Placeholder for a missing key. Checks that need a key are skipped, so the placeholder is never sent. */
const NO_KEY = 'no-key';

export const examine = async (options: DoctorOptions): Promise<Diagnosis> => {
  const { connect, signal = new AbortController().signal } = options;
  const clock = connect?.clock ?? systemClock;
  const hasKey = options.keyFile.state === 'found';
  const settings = connect === null ? null : checkOptions(hasKey ? connect : { ...connect, token: NO_KEY });
  const way = settings === null ? null : new ServerChecks(settings, hasKey);
  try {
    return await runChecks(way === null ? localProbes(options) : allProbes(options, way), {
      clock,
      withinMs: DOCTOR_WITHIN_MS,
      stop: signal,
      wordsOf: reasonOf,
      onBegin: options.onBegin ?? (() => {}),
    });
  } finally {
    way?.close();
  }
};

const localProbes = ({ config, keyFile }: DoctorOptions): Probes => [
  ['config', async () => judgeConfig(config)],
  ['key_file', async () => judgeKeyFile(keyFile)],
  // Without a config file these checks are skipped, and name the config file as the reason.
  ...NEED_CONFIG.map((id) => [id, async (): Promise<Finding> => skipped('')] as const),
];

const NEED_CONFIG: readonly CheckId[] = [
  ...(['clock', 'proxy', 'dns', 'tcp', 'tls', 'edge', 'key', 'carriers', 'latency'] as const),
  ...(['bandwidth', 'udp', 'nat', 'targets', 'platform'] as const),
];

/** The doctor's checks in execution order. Later checks use connections opened by earlier checks. */
const allProbes = (options: DoctorOptions, way: ServerChecks): Probes => [
  ['config', async () => judgeConfig(options.config)],
  ['key_file', async () => judgeKeyFile(options.keyFile)],
  ['proxy', async (signal) => judgeProxy(await way.throughProxy(signal))],
  ['dns', async (signal) => judgeDns(await way.lookUp(signal))],
  ['tcp', async (signal) => judgeTcp(await way.connect(signal))],
  ['clock', async (signal) => judgeClock(await way.askTime(signal))],
  ['tls', async (signal) => judgeTls(await way.secure(signal))],
  ['edge', async (signal) => judgeEdge(await way.greet(signal))],
  ['key', async (signal) => judgeKey(await way.authenticate(signal))],
  ['carriers', async (signal) => judgeCarriers(await way.openCarriers(signal))],
  ['latency', async (signal) => judgeLatency(await way.ping(signal))],
  [
    'bandwidth',
    async (signal) => judgeBandwidth(options.bandwidth ? await way.measure(signal) : { state: 'not-wanted' }),
  ],
  ['udp', async (signal) => judgeUdp(await way.askUdp(signal))],
  ['nat', async () => (way.nat === null ? skipped('the edge does not offer UDP') : judgeNat(way.nat))],
  [
    'targets',
    async (signal) => judgeTargets(await lookAtTargets(options.tunnels, options.connect?.clock ?? systemClock, signal)),
  ],
  ['platform', async (signal) => judgePlatform(await options.platform(signal))],
];

/** Checks the targets of the tunnels: connects to every service and looks at every folder. UDP services cannot be probed. */
const lookAtTargets = (tunnels: readonly ClientSpec[], clock: Clock, signal: AbortSignal): Promise<TargetFacts[]> =>
  Promise.all(
    tunnels.filter(canBeAsked).map(async (spec) => ({
      name: spec.name ?? spec.proto,
      target: localText(spec),
      problem:
        spec.files === undefined ? await problemOfService(spec, clock, signal) : await problemOfFolder(spec.files.dir),
    })),
  );

const canBeAsked = ({ proto, p2p_service }: ClientSpec): boolean => proto !== 'udp' && p2p_service !== 'udp';

const problemOfService = async (spec: ClientSpec, clock: Clock, signal: AbortSignal): Promise<string | null> => {
  const target = localTargetOf(spec, null);
  if (target.kind === 'files') return null;
  const result = await tcpProbe({ target, timeoutMs: DOCTOR_TARGET_WITHIN_MS, clock })(signal);
  return result.ok ? null : result.reason;
};

const problemOfFolder = async (dir: string): Promise<string | null> => {
  try {
    return (await stat(dir)).isDirectory() ? null : 'not a folder';
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such folder' : reasonOf(error);
  }
};
