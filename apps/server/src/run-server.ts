// The life of one server process: claim the data directory, start, say so, run until a signal, drain, clean up.
import { constants } from 'node:os';
import { createEdge, type Edge } from '@tunnel/edge';
import { createLogger, type Logger, onSignals, type ServerConfig, systemClock } from '@tunnel/runtime';
import { type AdminToken, loadAdminToken } from './admin-token.ts';
import { openDataDir } from './data-dir.ts';
import { EXIT_OK, EXIT_UNEXPECTED } from './problem-report.ts';
import { hostPort, httpUrl } from './reachable.ts';
import { readyText } from './ready-text.ts';
import { type RunFile, refuseSecondServer, removeRunFile, writeRunFile } from './run-file.ts';
import { VERSION } from './version.ts';

const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;
// Under npm one Ctrl-C arrives twice: from the terminal, and passed on by npm.
const SAME_SIGNAL_WITHIN_MS = 1000;

/** Runs until it is told to stop; gives the exit code. */
export const runServer = async (config: ServerConfig, host: NodeJS.Process): Promise<number> => {
  const dataDir = openDataDir(config.data_dir);
  refuseSecondServer(dataDir);
  const admin = loadAdminToken(config.auth.admin_token, dataDir);
  const logger = createLogger({ format: logFormat(host), stream: host.stderr });
  const edge = createEdge(config, { clock: systemClock, logger, adminToken: admin.token, version: VERSION });
  const stopping = waitForStop(edge, logger, host, dataDir);
  try {
    await edge.start();
    const run = describeRun(edge, admin, host.pid);
    writeRunFile(dataDir, run);
    host.stdout.write(
      readyText({
        run,
        dataDir,
        domain: config.server.domain,
        tcpPortRange: config.limits.tcp_port_range,
        tls: config.tls.cert_path !== '',
        workingDir: host.cwd(),
      }),
    );
    const signal = await stopping;
    logger.info({ signal, drain_secs: config.server.drain_secs }, 'stopping: open connections may finish');
    await edge.stop({ drainMs: config.server.drain_secs * 1000 });
    logger.info({}, 'stopped');
    return EXIT_OK;
  } finally {
    removeRunFile(dataDir);
    await logger.flush();
  }
};

/** The first signal resolves; a later one, or an error nobody caught, ends the process there and then. */
const waitForStop = (edge: Edge, logger: Logger, host: NodeJS.Process, dataDir: string): Promise<NodeJS.Signals> => {
  const endNow = (code: number): void => {
    edge.stopNow();
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

const describeRun = ({ addresses }: Edge, admin: AdminToken, pid: number): RunFile => ({
  pid,
  platform_url: null,
  api_url: httpUrl(addresses.api),
  control: hostPort(addresses.control),
  http_url: httpUrl(addresses.http),
  https_url: addresses.https === null ? null : `https://${hostPort(addresses.https)}`,
  metrics_url: httpUrl(addresses.metrics, '/metrics'),
  simulator_url: null,
  admin_token_file: admin.file,
});

/** Log lines go to stderr, so that stdout holds only what is for people. */
const logFormat = (host: NodeJS.Process): 'human' | 'json' => {
  const wanted = host.env['TUNNEL_LOG'];
  if (wanted === 'human' || wanted === 'json') return wanted;
  return host.stderr.isTTY ? 'human' : 'json';
};
