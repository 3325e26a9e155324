// Runs a part as a child process of the stack. The part loads its code, waits for the start message, reports its addresses, and ends on
// the stop message, or immediately when the parent process is gone. The part ignores signals, because a terminal sends them to every
// process of the group and only the parent handles them.
import { join } from 'node:path';
import { loadServerConfig } from '@tunnel/config/server';
import { Fault } from '@tunnel/errors';
import {
  type BackupFigures,
  type Clock,
  createLogger,
  type FileLock,
  type Logger,
  lockHolder,
  Secret,
  takeLock,
} from '@tunnel/runtime';
import { VERSION } from '../bundle.ts';
import { mailText } from '../console/ready-text.ts';
import { crashErrorOf, processCounters } from '../data-dir/crash-reports.ts';
import type { ServerHost } from '../process/host.ts';
import { EXIT_OK, EXIT_UNEXPECTED, faultOf } from '../process/problem-report.ts';
import type { FromPart, PartName, PartReady, StartPart, ToPart } from '../stack/messages.ts';
import { loadCodeOf, ServerParts } from './server-parts.ts';

const IGNORED_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

const PART_BOUNDS = {
  /** Interval of load reports from a part to the parent. */
  COUNTERS_EVERY_MS: 5000,
  /** How long a part of a killed stack can take to end, normally a few moments. A part that hangs is killed. */
  PREDECESSOR_MS: 3000,
  /** How long the end of a killed part can take, in case the disk does not respond. */
  PREDECESSOR_KILLED_MS: 10_000,
  PREDECESSOR_POLL_MS: 20,
  /** Time limit for sending the last message to the parent. */
  LAST_WORD_MS: 500,
} as const;

export const runPart = async (part: PartName, host: ServerHost): Promise<number> => {
  for (const signal of IGNORED_SIGNALS) host.signals.on(signal, () => {});
  const parent = new ParentChannel(host);
  // Log lines are JSON, because only the parent reads the lines and formats them for the terminal.
  const logger = createLogger({ format: 'json', stream: host.stderr });
  await loadCodeOf(part);
  parent.say({ kind: 'loaded' });
  const start = await parent.start;
  let edgeUrl: string | null = null;
  let restarts: Readonly<Record<string, number>> = {};
  let backups: BackupFigures | null = null;
  parent.onMessage = (message) => {
    if (message.kind === 'edge-at') edgeUrl = message.url;
    if (message.kind === 'restarts') restarts = message.restarts;
    if (message.kind === 'backups') backups = message.figures;
  };
  const config = loadServerConfig({ env: {}, overrides: start.settings });
  const parts = new ServerParts(part, config, {
    clock: host.clock,
    logger,
    version: VERSION,
    dataDir: start.dataDir,
    adminToken: new Secret(start.adminToken),
    onMail: (notice) => host.stdout.write(mailText(notice)),
    onMakingDatabase: () => {},
    stack: {
      databaseUrl: new Secret(start.databaseUrl),
      edgeCredential: new Secret(start.edgeCredential),
      linkPort: start.linkPort,
      platformUrl: start.platformUrl,
      visitorSecret: start.visitorSecret === null ? null : new Secret(start.visitorSecret),
      platformAt: start.platformAt,
      edgeUrl: () => edgeUrl,
      restarts: () => restarts,
      backups: () => backups,
    },
  });
  const counters = (): Record<string, number> => ({ ...processCounters(), ...parts.counters });
  host.onUncaught((error) => {
    logger.error({ err: error }, 'unexpected error; exiting');
    parent.say({ kind: 'counters', counters: counters() });
    const said = parent.lastWord({ kind: 'crashed', error: crashErrorOf(error) });
    void Promise.all([said, logger.flush()]).finally(() => host.exit(EXIT_UNEXPECTED));
  });
  return serve(part, { host, parts, start, parent, logger, counters });
};

interface Served {
  readonly host: ServerHost;
  readonly parts: ServerParts;
  readonly start: StartPart;
  readonly parent: ParentChannel;
  readonly logger: Logger;
  readonly counters: () => Record<string, number>;
}

const serve = async (part: PartName, { host, parts, start, parent, logger, counters }: Served): Promise<number> => {
  let lock: FileLock | null = null;
  try {
    lock = await follow(part, start.dataDir, host.clock, logger);
    await parts.start();
  } catch (error) {
    const fault = faultOf(error);
    await parent.lastWord({
      kind: 'failed',
      fault: fault === undefined ? null : { code: fault.code, message: fault.message, values: fault.values },
      error: crashErrorOf(error),
    });
    lock?.release();
    await logger.flush();
    return EXIT_UNEXPECTED;
  }
  parent.say(describe(parts));
  host.releaseStartMemory();
  const sayCounters = (): void => parent.say({ kind: 'counters', counters: counters() });
  sayCounters();
  const ticking = host.clock.setInterval(sayCounters, PART_BOUNDS.COUNTERS_EVERY_MS);
  const { drainMs } = await parent.stop;
  ticking.cancel();
  await parts.stop({ drainMs });
  lock.release();
  await logger.flush();
  return EXIT_OK;
};

/**
 * Waits for the lock of a part before any port is opened. After a stack was killed, its parts end automatically within moments, but hold
 * their ports until then. The lock's holder is such an orphan: its parent would hold the lock of the data directory, which our parent
 * holds now.
 */
const follow = async (part: PartName, dataDir: string, clock: Clock, logger: Logger): Promise<FileLock> => {
  const path = join(dataDir, `${part}.lock`);
  const killAt = clock.monotonic() + PART_BOUNDS.PREDECESSOR_MS;
  const giveUpAt = killAt + PART_BOUNDS.PREDECESSOR_KILLED_MS;
  let isKilled = false;
  for (;;) {
    const lock = takeOrGoWithout(path, logger);
    if (lock !== null) return lock;
    const pid = lockHolder(path);
    if (pid !== null && !isKilled && clock.monotonic() >= killAt) {
      isKilled = true;
      logger.warn({ part, pid }, 'a process left over from an earlier run hangs; killing it');
      process.kill(pid, 'SIGKILL');
    }
    if (clock.monotonic() >= giveUpAt) throw new Fault('CONFIG_DATA_DIR_IN_USE', { dir: dataDir, pid: pid ?? 0 });
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, PART_BOUNDS.PREDECESSOR_POLL_MS));
  }
};

const NO_LOCK: FileLock = { touch: () => {}, release: () => {} };

/**
 * Takes the lock of a part, or continues without a lock if the file cannot be written. A full disk must not prevent the part from
 * starting, because the lock matters only in the rare case that a stack was killed.
 */
const takeOrGoWithout = (path: string, logger: Logger): FileLock | null => {
  try {
    return takeLock(path);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    logger.error({ file: path, reason }, 'cannot write the lock file; continuing without a lock');
    return NO_LOCK;
  }
};

const describe = ({ edge, platform, simulator }: ServerParts): PartReady => {
  const { addresses } = edge ?? {};
  return {
    kind: 'ready',
    platform: platform?.stackAddress
      ? {
          api: platform.address,
          link: platform.stackAddress,
          simulatorUrl: simulator?.url ?? null,
          dns: platform.dnsAddress,
        }
      : null,
    edge: addresses?.stackApi ? { ...addresses, stackApi: addresses.stackApi } : null,
  };
};

/**
 * The part's end of the IPC channel to the stack. When the channel closes, the process exits, because no other process would ever stop a
 * part without a parent.
 */
class ParentChannel {
  readonly start: Promise<StartPart>;
  readonly stop: Promise<Extract<ToPart, { kind: 'stop' }>>;
  onMessage: (message: ToPart) => void = () => {};
  readonly #host: ServerHost;

  constructor(host: ServerHost) {
    this.#host = host;
    const end = (): void => host.exit(EXIT_UNEXPECTED);
    if (!host.parent.connected) end();
    host.parent.on('disconnect', end);
    let toldToStart = (_: StartPart): void => {};
    let toldToStop = (_: Extract<ToPart, { kind: 'stop' }>): void => {};
    this.start = new Promise((resolve) => {
      toldToStart = resolve;
    });
    this.stop = new Promise((resolve) => {
      toldToStop = resolve;
    });
    host.parent.on('message', (raw) => {
      const message = raw as ToPart;
      if (message.kind === 'start') toldToStart(message);
      else if (message.kind === 'stop') toldToStop(message);
      else this.onMessage(message);
    });
  }

  say(message: FromPart): void {
    void this.lastWord(message);
  }

  /** Sends a message to the parent. Resolves when the message was sent, or after a time limit. */
  lastWord(message: FromPart): Promise<void> {
    return new Promise((resolve) => {
      const late = this.#host.clock.setTimeout(resolve, PART_BOUNDS.LAST_WORD_MS);
      const done = (): void => {
        late.cancel();
        resolve();
      };
      const { parent } = this.#host;
      if (parent.connected) parent.send?.(message, done);
      else done();
    });
  }
}
