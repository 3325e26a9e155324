// Runs the doctor's checks: each as soon as what it stands on was found well, all of them within one time.
import { setMaxListeners } from 'node:events';
import {
  CHECK_IDS,
  type Check,
  type CheckId,
  type Diagnosis,
  diagnose,
  type Finding,
  inTheWay,
  skipped,
  skippedFor,
  titleOf,
} from '@tunnel/core';
import type { Clock } from '@tunnel/runtime';

/** What one check looks at. A probe that cannot tell throws; it ends when `signal` does. */
export type Probe = (signal: AbortSignal) => Promise<Finding>;

/** In the order in which they run: a later one may use what an earlier one opened. */
export type Probes = readonly (readonly [id: CheckId, probe: Probe])[];

export interface CheckRun {
  readonly clock: Clock;
  /** Of all of them. */
  readonly withinMs: number;
  /** Aborted: what is left is not looked at. */
  readonly stop: AbortSignal;
  readonly onBegin: (id: CheckId, done: number, total: number) => void;
  /** What an unexpected error of a probe says, without secrets. */
  readonly wordsOf: (error: unknown) => string;
}

export const runChecks = async (probes: Probes, run: CheckRun): Promise<Diagnosis> => {
  const late = new AbortController();
  const timer = run.clock.setTimeout(() => late.abort(new Error('it took too long')), run.withinMs);
  const signal = AbortSignal.any([late.signal, run.stop]);
  // Each probe listens to it, and all of them are over with the run.
  setMaxListeners(0, signal);
  const found = new Map<CheckId, Finding>();
  const checks: Check[] = [];
  try {
    for (const [id, probe] of probes) {
      run.onBegin(id, checks.length, CHECK_IDS.length);
      const since = run.clock.monotonic();
      const finding = await look(id, probe, found, signal, run);
      found.set(id, finding);
      checks.push({ id, title: titleOf(id), ...finding, ms: Math.round(run.clock.monotonic() - since) });
    }
  } finally {
    timer.cancel();
  }
  return diagnose(checks);
};

const look = async (
  id: CheckId,
  probe: Probe,
  found: ReadonlyMap<CheckId, Finding>,
  signal: AbortSignal,
  { wordsOf, stop }: CheckRun,
): Promise<Finding> => {
  const cause = inTheWay(id, found);
  if (cause !== null) return skippedFor(cause);
  if (signal.aborted) return skipped('not looked at: no time was left');
  try {
    return await Promise.race([probe(signal), whenAborted(signal)]);
  } catch (error) {
    if (stop.aborted) return skipped('not looked at: stopped');
    if (signal.aborted)
      return { status: 'warn', detail: 'no answer in time', hint: 'Run it again; if it stays, the way to it is slow.' };
    return { status: 'fail', detail: wordsOf(error), hint: 'Run it again with TUNNEL_DEBUG=1.' };
  }
};

/** A probe that does not look at its signal would hold up everything behind it. */
const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
