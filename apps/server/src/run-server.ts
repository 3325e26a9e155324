// The life of one server process: claim the data directory, start, say so, run until a signal, drain, clean up.
import { constants } from 'node:os';
import type { MailNotice } from '@tunnel/platform';
import { createLogger, type Logger, onSignals, Secret, type ServerConfig, systemClock } from '@tunnel/runtime';
import {
  type AdminToken,
  loadAdminToken,
  openDataDir,
  type RunFile,
  refuseSecondServer,
  removeRunFile,
  writeRunFile,
} from './data-dir.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from './problem-report.ts';
import { hostPort, httpUrl, readyText } from './ready-text.ts';
import { type ServerKind, ServerParts } from './server-parts.ts';
import { VERSION } from './version.ts';

/** A simulator that runs alone has nothing that an operator is let into. */
const NO_ADMIN: AdminToken = { token: new Secret(''), file: null };

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
// Under npm one Ctrl-C arrives twice: from the terminal, and passed on by npm.
const SAME_SIGNAL_WITHIN_MS = 1000;

export interface RunOptions {
  /** Of a simulator that runs alone. */
  readonly webhookUrl?: string;
  /** What is said when it is ready is for programs: the simulator's URL and keys. */
  readonly isJson?: boolean;
}

/** Runs until it is told to stop; gives the exit code. */
export const runServer = async (
  kind: ServerKind,
  config: ServerConfig,
  host: NodeJS.Process,
  { webhookUrl, isJson = false }: RunOptions = {},
): Promise<number> => {
  const dataDir = openDataDir(config.data_dir);
  refuseSecondServer(dataDir);
  const admin = kind === 'simulator' ? NO_ADMIN : loadAdminToken(config.auth.admin_token, dataDir);
  const logger = createLogger({ format: logFormat(host), stream: host.stderr });
  const parts = new ServerParts(kind, config, {
    ...{ clock: systemClock, logger, version: VERSION, dataDir, adminToken: admin.token },
    onMail: (notice) => host.stdout.write(mailText(notice)),
    onMakingDatabase: () => logger.info({}, 'starting the embedded database'),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
  });
  const stopping = waitForStop(parts, logger, host, dataDir);
  try {
    await parts.start();
    const run = describeRun(parts, admin, host.pid);
    writeRunFile(dataDir, run);
    const facts = {
      ...{ run, dataDir, workingDir: host.cwd(), domain: config.server.domain },
      tcpPortRange: config.limits.tcp_port_range,
      tls: config.tls.cert_path !== '',
    };
    host.stdout.write(isJson ? `${JSON.stringify(simulatorFacts(parts, run))}\n` : readyText(facts));
    const signal = await stopping;
    logger.info({ signal, drain_secs: config.server.drain_secs }, 'stopping: open connections may finish');
    await parts.stop({ drainMs: config.server.drain_secs * 1000 });
    logger.info({}, 'stopped');
    return EXIT_OK;
  } finally {
    removeRunFile(dataDir);
    await logger.flush();
  }
};

/** The first signal resolves; a later one, or an error nobody caught, ends the process there and then. */
const waitForStop = (
  parts: ServerParts,
  logger: Logger,
  host: NodeJS.Process,
  dataDir: string,
): Promise<NodeJS.Signals> => {
  const endNow = (code: number): void => {
    parts.stopNow();
    removeRunFile(dataDir);
    host.exit(code);
  };
  const onUncaught = (error: unknown): void => {
    logger.error({ err: error }, 'unexpected error, ending');
    void logger.flush().finally(() => endNow(EXIT_UNEXPECTED));
  };
  host.on('uncaughtException', onUncaught);
  return new Promise((resolve) => {
    onSignals({
      signals: [...STOP_SIGNALS],
      sameWithinMs: SAME_SIGNAL_WITHIN_MS,
      onFirst: resolve,
      onSecond: (signal) => endNow(128 + (constants.signals[signal] ?? 0)),
    });
  });
};

const describeRun = ({ edge, platform, simulator }: ServerParts, admin: AdminToken, pid: number): RunFile => {
  const addresses = edge?.addresses ?? null;
  return {
    pid,
    platform_url: platform === null ? null : httpUrl(platform.address),
    api_url: addresses === null ? null : `${addresses.api.tls ? 'https' : 'http'}://${hostPort(addresses.api)}`,
    control: addresses === null ? null : hostPort(addresses.control),
    http_url: addresses === null ? null : httpUrl(addresses.http),
    https_url: addresses?.https ? `https://${hostPort(addresses.https)}` : null,
    metrics_url: addresses === null ? null : httpUrl(addresses.metrics, '/metrics'),
    simulator_url: simulator?.url ?? null,
    admin_token_file: addresses === null ? null : admin.file,
  };
};

const simulatorFacts = ({ simulator }: ServerParts, { pid, simulator_url }: RunFile): object => ({
  ...{ pid, simulator_url },
  secret_key: simulator?.secretKey.reveal(),
  webhook_secret: simulator?.webhookSecret.reveal(),
});

/** Without a mail server, the console is where its reader finds the link. */
const mailText = ({ recipient, subject, link, file }: MailNotice): string =>
  `mail to ${recipient}: ${subject}\n  ${link === null ? file : link.reveal()}\n`;

/** Log lines go to stderr, so that stdout holds only what is for people. */
const logFormat = (host: NodeJS.Process): 'human' | 'json' => {
  const wanted = host.env['TUNNEL_LOG'];
  if (wanted === 'human' || wanted === 'json') return wanted;
  return host.stderr.isTTY ? 'human' : 'json';
};
