// Takes an order from its current state to the certificate. Valid authorizations are not repeated, so an order can continue at any point
// after a restart.
import { Fault } from '@tunnel/errors';
import type { Clock } from '@tunnel/runtime';
import type { AcmeAccount, AcmeAuthorization, AcmeChallenge, AcmeOrder } from '../client/acme-client.ts';
import { AcmeProblem, readProblem } from '../client/acme-problem.ts';
import { type ChallengeAnswer, isChallengeType } from '../client/challenge-answers.ts';
import { certificateRequest, type IssuedCertificate, readIssued } from '../client/issued-certificate.ts';
import type { ChallengeSolver } from './challenge-solver.ts';

/** First pause between polls of an order; doubled every time, or as the authority requests. */
export const POLL_FIRST_MS = 500;
/** Longest pause between polls of an order. */
export const POLL_LONGEST_MS = 10_000;
/** Maximum polling time of a validation or order. A later attempt continues it. */
export const POLL_TOTAL_MS = 90_000;
/** Time limit for setting a challenge response until it is visible: a program may set it, and DNS records take time to spread. */
const CHALLENGE_SET_MS = 200_000;

export interface OrderPlan {
  readonly account: AcmeAccount;
  readonly names: readonly string[];
  /** Private key for the certificate as PKCS #8 in PEM. */
  readonly key: string;
  /** Solvers that respond to ACME challenges, preferred first. */
  readonly solvers: readonly ChallengeSolver[];
  /** Number of rejected validations so far. Every rejection moves on to the next solver. */
  readonly refusals: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

export const finishOrder = async (plan: OrderPlan, url: string): Promise<IssuedCertificate> => {
  const { account, names, key, signal } = plan;
  let order = await account.order(url, { signal });
  if (order.status === 'pending') {
    for (const one of order.authorizations) await authorize(plan, one);
    order = await settled(plan, url, 'pending');
  }
  if (order.status === 'ready') {
    order = await account.finalize(order, await certificateRequest(names, key), { signal });
  }
  if (order.status === 'processing' || order.status === 'ready')
    order = await settled(plan, url, 'processing', 'ready');
  if (order.status !== 'valid' || order.certificate === undefined) throw refusedOrder(order);
  return readIssued(await account.certificate(order.certificate, { signal }), names, key);
};

const refusedOrder = ({ error, status, identifiers }: AcmeOrder): Fault => {
  const detail = readProblem(error, 0).detail || `the order is ${status}`;
  return new Fault('ACME_REFUSED', { what: identifiers.map(({ value }) => value).join(', '), detail });
};

/** Polls an order until its status is none of `statuses`. */
const settled = (plan: OrderPlan, url: string, ...statuses: AcmeOrder['status'][]): Promise<AcmeOrder> =>
  poll(plan, 'the order', async () => {
    const order = await plan.account.order(url, { signal: plan.signal });
    return { value: order, isDone: !statuses.includes(order.status), retryAfterMs: order.retryAfterMs };
  });

const authorize = async (plan: OrderPlan, url: string): Promise<void> => {
  const { account, signal } = plan;
  const authorization = await account.authorization(url, { signal });
  if (authorization.status === 'valid') return;
  const name = authorization.name.replace(/^\*\./, '');
  const { challenge, solver } = await choose(plan, authorization);
  const token = challenge.token ?? '';
  const answer: ChallengeAnswer = { type: solver.type, name, token, keyAuthorization: account.keyAuthorization(token) };
  try {
    await setAnswer(plan, solver, answer);
    // A challenge in `processing` was submitted before a restart and is not submitted again.
    if (challenge.status === 'pending') await account.challengeReady(challenge, { signal });
    const seen = await poll(plan, `the validation of ${name}`, async () => {
      const value = await account.authorization(url, { signal });
      return { value, isDone: value.status !== 'pending', retryAfterMs: value.retryAfterMs };
    });
    if (seen.status !== 'valid') throw notValidated(seen, solver.type);
  } finally {
    // The authority has validated or will be notified again. A response that remains expires automatically.
    await solver.clear(answer).catch(() => {});
  }
};

interface ChosenChallenge {
  readonly challenge: AcmeChallenge;
  readonly solver: ChallengeSolver;
}

const choose = async (
  { solvers, refusals }: OrderPlan,
  { name, challenges, status }: AcmeAuthorization,
): Promise<ChosenChallenge> => {
  const refused = challenges.find((one) => one.status === 'invalid');
  if (status !== 'pending' && refused !== undefined) throw failedBy(name, refused);
  const host = name.replace(/^\*\./, '');
  const usable: ChosenChallenge[] = [];
  for (const solver of solvers) {
    const challenge = challenges.find((one) => one.type === solver.type && one.token !== undefined);
    if (challenge !== undefined && (await solver.canAnswer(host, host !== name))) usable.push({ challenge, solver });
  }
  // A challenge that the authority is already validating takes precedence.
  const begun = usable.find(({ challenge }) => challenge.status === 'processing');
  const chosen = begun ?? usable[refusals % Math.max(1, usable.length)];
  if (chosen !== undefined) return chosen;
  const offered = challenges.map(({ type }) => (isChallengeType(type) ? type : 'others')).join(', ');
  throw new Fault('ACME_NO_CHALLENGE', { name, offered });
};

const setAnswer = async (plan: OrderPlan, solver: ChallengeSolver, answer: ChallengeAnswer): Promise<void> => {
  const late = new AbortController();
  const end = (): void => late.abort(new Error(`not finished within ${CHALLENGE_SET_MS / 1000} s`));
  const timer = plan.clock.setTimeout(end, CHALLENGE_SET_MS);
  const signal = AbortSignal.any([late.signal, plan.signal]);
  try {
    await Promise.race([solver.set(answer, signal), aborted(signal)]);
  } catch (error) {
    if (plan.signal.aborted) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    const { type: challenge, name } = answer;
    throw new Fault('ACME_CHALLENGE_UNSET', { challenge, name, reason }, { cause: error });
  } finally {
    timer.cancel();
  }
};

const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    if (signal.aborted) reject(signal.reason as Error);
  });

const failedBy = (name: string, { type, error }: AcmeChallenge): Fault =>
  new Fault('ACME_VALIDATION', {
    name,
    challenge: type,
    detail: readProblem(error, 0).detail || 'no reason was given',
  });

const notValidated = ({ name, challenges, status }: AcmeAuthorization, type: string): Fault => {
  const challenge = challenges.find((one) => one.status === 'invalid') ?? challenges.find((one) => one.type === type);
  if (challenge?.error !== undefined) return failedBy(name, challenge);
  return new Fault('ACME_VALIDATION', { name, challenge: type, detail: `the authorization is ${status}` });
};

interface Look<T> {
  readonly value: T;
  readonly isDone: boolean;
  readonly retryAfterMs: number | null;
}

/** Polls with growing pauses. A temporary failure of the authority does not affect the order. */
const poll = async <T>({ clock, signal }: OrderPlan, what: string, look: () => Promise<Look<T>>): Promise<T> => {
  const giveUpAt = clock.monotonic() + POLL_TOTAL_MS;
  let pauseMs: number = POLL_FIRST_MS;
  for (;;) {
    const seen = await look().catch((error: unknown) => {
      if (!isAway(error) || signal.aborted) throw error;
      return null;
    });
    if (seen?.isDone === true) return seen.value;
    if (clock.monotonic() >= giveUpAt) {
      throw new Fault('ACME_ORDER_SLOW', { what, seconds: POLL_TOTAL_MS / 1000 });
    }
    const asked = Math.min(seen?.retryAfterMs ?? 0, POLL_LONGEST_MS);
    await pause(clock, Math.max(pauseMs, asked), signal);
    pauseMs = Math.min(POLL_LONGEST_MS, pauseMs * 2);
  }
};

const isAway = (error: unknown): boolean =>
  error instanceof AcmeProblem ? error.isAway : error instanceof Fault && error.code === 'ACME_AWAY';

const pause = (clock: Clock, ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve, reject) => {
    const end = (): void => {
      timer.cancel();
      reject(signal.reason as Error);
    };
    const timer = clock.setTimeout(() => {
      signal.removeEventListener('abort', end);
      resolve();
    }, ms);
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
  });
