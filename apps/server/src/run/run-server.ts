// The life of a server process: locks the data directory, starts the parts, prints the ready message, runs until a signal, drains
// connections, and cleans up.
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

/** Empty admin token for a simulator without a platform, which has no admin API. */
const NO_ADMIN: AdminToken = { token: new Secret(''), file: null };

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
// Under npm, Ctrl-C arrives twice: from the terminal, and forwarded by npm.
const SAME_SIGNAL_WITHIN_MS = 1000;

/** Dependencies passed to the parts or the stack. */
export type RunDeps = PartsOptions & StackDeps;

export interface RunOptions {
  readonly make: (deps: RunDeps) => Running;
  /** Prints the ready message as JSON for programs: the URL and the keys of the simulator. */
  readonly isJson?: boolean;
  /** Additional notes for the operator, read when the server is ready. */
  readonly notes?: readonly string[];
  /** Shows all log lines and addresses of a stack at a terminal, as in collected output. */
  readonly verbose?: boolean;
}

/** The running server: either the parts within this process, or the stack, where each part is a separate process. */
interface Running {
  start(): Promise<void>;
  stop(options: { readonly drainMs: number }): Promise<void>;
  stopNow(): void;
  readonly reach: Reach;
  /** Lines about backups for the operator. */
  readonly backupLines: readonly string[];
  readonly simulator?: ServerParts['simulator'];
  readonly counters?: Readonly<Record<string, number>>;
}

/** Runs the server until a stop signal. Resolves with the exit code. */
export const runServer = async (
  kind: ServerKind | 'stack',
  config: ServerConfig,
  host: ServerHost,
  { make, isJson = false, verbose = false, notes = [] }: RunOptions,
): Promise<number> => {
  if (kind !== 'simulator') checkAcmeSettings(config, kind);
  // The notifier is created before any child process, because it removes its environment variables. A child with the variables would send
  // notifications to the service manager in our name.
  const manager = createServiceNotifier({ env: host.env });
  // The data directory is opened with the system clock, because the speed of the disk does not depend on the clock of a test.
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
    const facts = readyFacts(kind, config, { run, dataDir, host, notes: [...notes, ...running.backupLines] });
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

/** Starts the parts. Returns false if the start failed because a stop was requested meanwhile. */
const startParts = async (running: Running, stop: ReturnType<typeof waitForStop>): Promise<boolean> => {
  try {
    await running.start();
    return true;
  } catch (error) {
    // Ctrl-C reaches every process of the terminal. A part may exit before it has installed handlers that ignore the signal.
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

/** Collects the facts for the ready message. */
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
    publishedPorts: { http: config.server.public_http_port, https: config.server.public_https_port },
    signUp: config.platform.sign_up,
    firstAccount: run.platform_url === null ? null : readFirstAccountLink(dataDir),
    tls: config.tls.cert_path !== '' || config.acme.enabled,
    // Clients do not accept certificates of the local CA, so with the local CA they connect unencrypted to a separate port.
    controlOnPublic: config.server.control_on_public && !config.tls.local_ca,
    publicUrl: publicUrlOf(config),
    notes: kind === 'simulator' ? [] : [...notes, ...startNotes(config, kind), ...trust],
  };
};

/** Returns the public URL of the dashboard. Null if the dashboard can be opened only on this machine. */
const publicUrlOf = (config: ServerConfig): string | null => {
  const { public_url } = config.platform;
  const isAtHome = isLoopbackHost(new URL(public_url).hostname) && platformHostAtEdge(config) === null;
  return isAtHome ? null : public_url.replace(/\/$/, '');
};

/**
 * Creates the output of a part. Lines of the part appear as output of this process. If a part prints too many lines, only its own lines
 * are dropped.
 */
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

/** Waits for a stop signal. The first signal resolves `asked`. A later signal, or an uncaught error, ends the process immediately. */
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
