// A server that outlived the process that started it: found by the pid file in its cluster, and stopped.
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, isProcessAlive, type Logger } from '@tunnel/runtime';
import { POSTGRES_BOUNDS } from './postgres-bounds.ts';

export const stopOrphan = async (cluster: string, logger: Logger, clock: Clock): Promise<void> => {
  const pid = pidIn(cluster);
  if (pid === undefined || !isServerOf(cluster, pid)) {
    // The number may belong to any program by now, and PostgreSQL would not start for fear of it. Nor with a file that is empty,
    // as a server leaves it that is killed between making and writing it.
    rmSync(join(cluster, 'postmaster.pid'), { force: true });
    return;
  }
  logger.info({ pid }, 'an embedded database of an earlier run is still there and is stopped');
  const { FAST_STOP_MS, IMMEDIATE_STOP_MS } = POSTGRES_BOUNDS;
  for (const [signal, ms] of [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
    ['SIGKILL', 1000],
  ] as const) {
    if (!send(pid, signal)) return;
    if (await isGoneWithin(cluster, pid, ms, clock)) return;
  }
};

const pidIn = (cluster: string): number | undefined => {
  try {
    const pid = Number.parseInt(readFileSync(join(cluster, 'postmaster.pid'), 'utf8'), 10);
    return pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
};

/** By its command line, which names the cluster. */
const isServerOf = (cluster: string, pid: number): boolean =>
  isProcessAlive(pid) && commandOf(pid).includes(`-D ${cluster} `);

const commandOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return psCommandOf(pid);
  }
};

const psCommandOf = (pid: number): string => {
  try {
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' });
  } catch {
    return '';
  }
};

const send = (pid: number, signal: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
};

const isGoneWithin = async (cluster: string, pid: number, ms: number, clock: Clock): Promise<boolean> => {
  const giveUpAt = clock.monotonic() + ms;
  while (isServerOf(cluster, pid)) {
    if (clock.monotonic() >= giveUpAt) return false;
    await new Promise<void>((resolve) => void clock.setTimeout(resolve, POSTGRES_BOUNDS.POLL_MS));
  }
  return true;
};
