// The life of one server process: claim the data directory, start, say so, run until a signal, drain, clean up.
import { existsSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { platformHostAtEdge, type ServerConfig } from '@tunnel/config/server';
import { isLoopbackHost } from '@tunnel/rules/net';
import {
  createLineRelay,
  createLogger,
  createServiceNotifier,
  isDetailLine,
  type Logger,
  onSignals,
  readFirstAccountLink,
  Secret,
} from '@tunnel/runtime';
import { VERSION } from '../bundle.ts';
import { briefText, mailText, type ReadyFacts, readyText } from '../console/ready-text.ts';
import { startNotes, trustNotes } from '../console/start-notes.ts';
import { crashErrorOf, processCounters, writeCrash } from '../data-dir/crash-reports.ts';
import {
  type AdminToken,
  describeRun,
  loadAdminToken,
  lockDataDir,
  openDataDir,
  type Reach,
  type RunFile,
  removeRunFile,
  writeRunFile,
} from '../data-dir/data-dir.ts';
import type { PartsOptions, ServerKind, ServerParts } from '../parts/server-parts.ts';
import { isBrief, logFormatOf, type ServerHost } from '../process/host.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from '../process/problem-report.ts';
import type { PartOutput } from '../stack/part-process.ts';
import type { StackDeps } from '../stack/stack.ts';
import { checkAcmeSettings } from './acme-settings.ts';
import { watchRecords } from './records-watch.ts';

/** A simulator that runs alone has nothing that an operator is let into. */
const NO_ADMIN: AdminToken = { token: new Secret(''), file: null };

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
// Under npm one Ctrl-C arrives twice: from the terminal, and passed on by npm.
const SAME_SIGNAL_WITHIN_MS = 1000;

/** What is given to whatever runs. */
export type RunDeps = PartsOptions & StackDeps;

export interface RunOptions {
  readonly make: (deps: RunDeps) => Running;
  /** What is said when it is ready is for programs: the simulator's URL and keys. */
  readonly isJson?: boolean;
  /** What else its operator should know, beside the notes on the configuration; read when it is ready. */
  readonly notes?: readonly string[];
  /** Of a stack at a terminal: every log line and every address, as elsewhere. */
  readonly verbose?: boolean;
}

/** What runs: the parts of this process, or the stack with parts that are processes of their own. */
interface Running {
  start(): Promise<void>;
  stop(options: { readonly drainMs: number }): Promise<void>;
  stopNow(): void;
  readonly reach: Reach;
  readonly simulator?: ServerParts['simulator'];
  readonly counters?: Readonly<Record<string, number>>;
}

/** Runs until it is told to stop; gives the exit code. */
export const runServer = async (
  kind: ServerKind | 'stack',
  config: ServerConfig,
  host: ServerHost,
  { make, isJson = false, verbose = false, notes = [] }: RunOptions,
): Promise<number> => {
  if (kind !== 'simulator') checkAcmeSettings(config, kind);
  // Before anything is launched: a child that inherited what it takes would speak in our name.
  const manager = createServiceNotifier({ env: host.env });
  // By the machine's own clock: a disk is as fast as it is, however fast the clock of a test runs.
  const dataDir = await openDataDir(config.data_dir);
  const lock = lockDataDir(dataDir);
  const logger = createLogger({ format: logFormatOf(host), stream: host.stderr });
  const outputs: PartOutput[] = [];
  const brief = kind === 'stack' && isBrief(host, verbose);
  let isStarting = true;
  const isHidden = (line: string): boolean => brief && isStarting && isDetailLine(line);
  try {
    const admin = kind === 'simulator' ? NO_ADMIN : loadAdminToken(config.auth.admin_token, dataDir);
    const running = make({
      clock: host.clock,
      logger,
      version: VERSION,
      dataDir,
      adminToken: admin.token,
      onMail: (notice) => host.stdout.write(mailText(notice)),
      onMakingDatabase: () => (brief ? undefined : logger.info({}, 'starting the embedded database')),
      output: () => {
        outputs.push(outputOfPart(host, isHidden));
        return outputs.at(-1) as PartOutput;
      },
    });
    const stop = waitForStop({ kind, running, logger, host, dataDir });
    if (brief) host.stdout.write('Starting the database, the platform and the edge ...\n');
    if (!(await startParts(running, stop))) return EXIT_OK;
    const run = describeRun(running.reach, admin.file, host.pid);
    writeRunFile(dataDir, run);
    const facts = readyFacts(kind, config, { run, dataDir, host, notes });
    const ready = brief ? briefText(facts) : readyText(facts);
    host.stdout.write(isJson ? `${JSON.stringify(simulatorFacts(running, run))}\n` : ready);
    isStarting = false;
    manager.ready();
    const hasVisitors = kind === 'stack' || kind === 'edge';
    const records = hasVisitors ? await watchRecords(config, host.clock, (line) => host.stdout.write(line)) : undefined;
    host.releaseStartMemory();
    const signal = await stop.asked;
    manager.stopping();
    records?.stop();
    logger.info({ signal, drain_secs: config.server.drain_secs }, 'stopping: open connections can finish');
    await running.stop({ drainMs: config.server.drain_secs * 1000 });
    logger.info({}, 'stopped');
    return EXIT_OK;
  } finally {
    removeRunFile(dataDir);
    lock.release();
    await manager.close();
    await Promise.all([logger, ...outputs.flatMap(({ out, log }) => [out, log])].map((lines) => lines.flush()));
  }
};

/** Returns false if the parts failed because a stop was requested during the start. */
const startParts = async (running: Running, stop: ReturnType<typeof waitForStop>): Promise<boolean> => {
  try {
    await running.start();
    return true;
  } catch (error) {
    // Ctrl-C reaches every process of the terminal: a part may die of it before it has learnt to leave that to us.
    if (stop.isAsked()) return false;
    throw error;
  }
};

interface Started {
  readonly run: RunFile;
  readonly dataDir: string;
  readonly host: ServerHost;
  readonly notes: readonly string[];
}

/** The facts of the ready text. */
const readyFacts = (kind: ServerKind | 'stack', config: ServerConfig, started: Started): ReadyFacts => {
  const { run, dataDir, host, notes } = started;
  const here = { dataDir, workingDir: host.workingDir };
  const isCheckout = existsSync(join(host.workingDir, 'node_modules', '.bin', 'hatchway'));
  const trust = kind === 'platform' ? [] : trustNotes(config, { ...here, system: host.platform });
  return {
    ...here,
    isCheckout,
    run,
    domain: config.server.domain,
    tcpPortRange: config.limits.tcp_port_range,
    signUp: config.platform.sign_up,
    firstAccount: run.platform_url === null ? null : readFirstAccountLink(dataDir),
    tls: config.tls.cert_path !== '' || config.acme.enabled,
    // An authority of this machine alone vouches for no client's connection: those come in clear, by their own port.
    controlOnPublic: config.server.control_on_public && !config.tls.local_ca,
    publicUrl: publicUrlOf(config),
    notes: kind === 'simulator' ? [] : [...notes, ...startNotes(config, kind), ...trust],
  };
};

/** Null if the dashboard can only be opened on this machine. */
const publicUrlOf = (config: ServerConfig): string | null => {
  const { public_url } = config.platform;
  const isAtHome = isLoopbackHost(new URL(public_url).hostname) && platformHostAtEdge(config) === null;
  return isAtHome ? null : public_url.replace(/\/$/, '');
};

/** What a part prints comes out as if we had printed it; one part's flood costs its own lines alone. */
const outputOfPart = (host: ServerHost, isHidden: (line: string) => boolean): PartOutput => {
  const log = createLineRelay({ stream: host.stderr, format: logFormatOf(host) });
  return {
    out: createLineRelay({ stream: host.stdout, format: 'json' }),
    log: { push: (line) => (isHidden(line) ? undefined : log.push(line)), flush: () => log.flush() },
  };
};

interface Watched {
  readonly kind: string;
  readonly running: Running;
  readonly logger: Logger;
  readonly host: ServerHost;
  readonly dataDir: string;
}

/** The first signal resolves; a later one, or an error nobody caught, ends the process there and then. */
const waitForStop = ({
  kind,
  running,
  logger,
  host,
  dataDir,
}: Watched): { readonly asked: Promise<NodeJS.Signals>; readonly isAsked: () => boolean } => {
  const endNow = (code: number): void => {
    running.stopNow();
    removeRunFile(dataDir);
    host.exit(code);
  };
  const onUncaught = (error: unknown): void => {
    logger.error({ err: error }, 'unexpected error; exiting');
    const counters = { ...processCounters(), ...running.counters };
    const facts = { part: kind, version: VERSION, uptimeMs: host.uptimeMs(), counters };
    writeCrash(dataDir, { ...facts, error: crashErrorOf(error), exitCode: EXIT_UNEXPECTED }, host.clock.now());
    void logger.flush().finally(() => endNow(EXIT_UNEXPECTED));
  };
  host.onUncaught(onUncaught);
  let isAsked = false;
  const asked = new Promise<NodeJS.Signals>((resolve) => {
    onSignals({
      signals: [...STOP_SIGNALS],
      sameWithinMs: SAME_SIGNAL_WITHIN_MS,
      clock: host.clock,
      source: host.signals,
      onFirst: (signal) => {
        isAsked = true;
        resolve(signal);
      },
      onSecond: (signal) => endNow(128 + (constants.signals[signal] ?? 0)),
    });
  });
  return { asked, isAsked: () => isAsked };
};

const simulatorFacts = ({ simulator }: Running, { pid, simulator_url }: RunFile): object => ({
  pid,
  simulator_url,
  secret_key: simulator?.secretKey.reveal(),
  webhook_secret: simulator?.webhookSecret.reveal(),
});
