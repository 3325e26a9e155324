// Runs the doctor's checks one after the other within a total timeout, and skips checks after a failed requirement.
import { setMaxListeners } from 'node:events';
import { type Clock, unlessAborted } from '@tunnel/runtime';
import {
  CHECK_IDS,
  type Check,
  type CheckId,
  type Diagnosis,
  diagnose,
  type Finding,
  inTheWay,
  outOfTime,
  skipped,
  skippedFor,
  titleOf,
} from './check.rules.ts';

/** Performs one check. Throws if no result is possible, and ends when `signal` aborts. */
export type Probe = (signal: AbortSignal) => Promise<Finding>;

/** Probes in execution order: a later probe may use connections opened by an earlier probe. */
export type Probes = readonly (readonly [id: CheckId, probe: Probe])[];

export interface CheckRun {
  readonly clock: Clock;
  /** Timeout for all checks together. */
  readonly withinMs: number;
  /** Signal that ends the run. If aborted, the remaining checks are skipped. */
  readonly stop: AbortSignal;
  readonly onBegin: (id: CheckId, done: number, total: number) => void;
  /** Describes an unexpected error of a check, without secrets. */
  readonly wordsOf: (error: unknown) => string;
}

export const runChecks = async (probes: Probes, run: CheckRun): Promise<Diagnosis> => {
  const late = new AbortController();
  const timer = run.clock.setTimeout(() => late.abort(new Error('timed out')), run.withinMs);
  const signal = AbortSignal.any([late.signal, run.stop]);
  // Every check adds listeners to the abort signal, so the limit on listeners is lifted. The signal ends with the run.
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
  if (stop.aborted) return STOPPED;
  if (signal.aborted) return outOfTime(id);
  try {
    return await unlessAborted(probe(signal), signal);
  } catch (error) {
    if (stop.aborted) return STOPPED;
    if (signal.aborted) return outOfTime(id);
    return { status: 'fail', detail: wordsOf(error), hint: 'Run the doctor again with TUNNEL_DEBUG=1.' };
  }
};

const STOPPED = skipped('skipped: stopped');
