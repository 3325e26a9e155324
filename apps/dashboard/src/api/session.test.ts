import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { lifetimeMs, Session, type SessionEnvironment, type SessionMessage } from './session.ts';

const jwt = (iat: number, exp: number): string => `h.${btoa(JSON.stringify({ iat, exp }))}.s`;
const A = jwt(1000, 1900);
const B = jwt(2000, 2900);

class FakeEnvironment implements SessionEnvironment {
  /** The results of the next token refreshes, in order. */
  answers: (string | Error)[] = [];
  refreshes = 0;
  logOuts = 0;
  readonly posted: SessionMessage[] = [];
  marked = true;
  timer: { ms: number; act: () => void } | null = null;

  async refresh(): Promise<string> {
    this.refreshes += 1;
    const answer = this.answers.shift() ?? new Fault('REFRESH_INVALID');
    if (typeof answer !== 'string') throw answer;
    return answer;
  }

  async logOut(): Promise<void> {
    this.logOuts += 1;
  }

  withLock<T>(work: () => Promise<T>): Promise<T> {
    return work();
  }

  after(ms: number, act: () => void): () => void {
    const timer = { ms, act };
    this.timer = timer;
    return () => {
      if (this.timer === timer) this.timer = null;
    };
  }

  post(message: SessionMessage): void {
    this.posted.push(message);
  }

  wasSignedIn(): boolean {
    return this.marked;
  }

  remember(isSignedIn: boolean): void {
    this.marked = isSignedIn;
  }
}

const open = (...answers: (string | Error)[]) => {
  const environment = new FakeEnvironment();
  environment.answers = answers;
  const session = new Session(environment);
  return { environment, session };
};

const away = new Fault('CLIENT_PLATFORM_UNREACHABLE');

describe('the dashboard session at start', () => {
  it('is signed in by the cookie', async () => {
    const { session } = open(A);
    expect(session.state.phase).toBe('starting');
    session.start();
    expect(await session.ready()).toEqual({ phase: 'signed-in' });
    expect(session.accessToken).toBe(A);
  });

  it('is signed out without a valid cookie, and does not count as ended', async () => {
    const { session } = open(new Fault('REFRESH_INVALID'));
    session.start();
    expect(await session.ready()).toEqual({ phase: 'signed-out', reason: 'none' });
  });

  it('sends no request in a browser without an earlier sign-in', async () => {
    const { environment, session } = open(A);
    environment.marked = false;
    session.start();
    expect(await session.ready()).toEqual({ phase: 'signed-out', reason: 'none' });
    expect(environment.refreshes).toBe(0);
  });

  it('remembers a sign-in until the user signs out or the platform rejects the session', async () => {
    const { environment, session } = open(away, A, new Fault('REFRESH_INVALID'));
    session.start();
    await expect.poll(() => environment.timer).not.toBeNull();
    expect(environment.marked).toBe(true);
    environment.timer?.act();
    await session.ready();
    await session.signOut();
    expect(environment.marked).toBe(false);
    session.signIn(B);
    expect(environment.marked).toBe(true);
    await expect(session.renew()).rejects.toThrow();
    expect(environment.marked).toBe(false);
  });

  it('tries again when the platform is unreachable', async () => {
    const { environment, session } = open(away, A);
    session.start();
    await expect(session.renew()).rejects.toBe(away);
    await Promise.resolve();
    expect(session.state.phase).toBe('starting');
    environment.timer?.act();
    expect(await session.ready()).toEqual({ phase: 'signed-in' });
  });
});

describe('renewing the access token', () => {
  it('sends one request for several simultaneous callers', async () => {
    const { environment, session } = open(A);
    expect(await Promise.all([session.renew(), session.renew(), session.renew()])).toEqual([A, A, A]);
    expect(environment.refreshes).toBe(1);
  });

  it('happens a minute before the token expires', async () => {
    const { environment, session } = open(B);
    session.signIn(A);
    expect(environment.timer?.ms).toBe(840_000);
    environment.timer?.act();
    await session.renew();
    expect(session.accessToken).toBe(B);
  });

  it('ends the session when the platform rejects the renewal', async () => {
    const { session } = open(new Fault('REFRESH_INVALID'));
    session.signIn(A);
    await expect(session.renew()).rejects.toMatchObject({ code: 'REFRESH_INVALID' });
    expect(session.state).toEqual({ phase: 'signed-out', reason: 'ended' });
    expect(session.accessToken).toBe('');
  });

  it('keeps the session when the platform is unreachable', async () => {
    const { session } = open(away);
    session.signIn(A);
    await expect(session.renew()).rejects.toBe(away);
    expect([session.state.phase, session.accessToken]).toEqual(['signed-in', A]);
  });

  it('does not sign in again when its response arrives after signing out', async () => {
    const { session } = open(B);
    session.signIn(A);
    const renewed = session.renew();
    await session.signOut();
    await renewed;
    expect([session.state, session.accessToken]).toEqual([{ phase: 'signed-out', reason: 'left' }, '']);
  });
});

it('deleting the account is shown as the reason, even if the session was rejected a moment before', async () => {
  const { environment, session } = open(new Fault('REFRESH_INVALID'));
  session.signIn(A);
  await expect(session.renew()).rejects.toMatchObject({ code: 'REFRESH_INVALID' });
  session.accountDeleted();
  expect([session.state, session.accessToken]).toEqual([{ phase: 'signed-out', reason: 'deleted' }, '']);
  expect([environment.posted, environment.logOuts]).toEqual([['signed-in', 'signed-out'], 0]);
});

describe('the session in several tabs', () => {
  it('announces signing in and signing out to the other tabs', async () => {
    const { environment, session } = open();
    session.signIn(A);
    await session.signOut();
    expect([environment.posted, environment.logOuts]).toEqual([['signed-in', 'signed-out'], 1]);
  });

  it('ends when another tab signs out, and does not announce it again', () => {
    const { environment, session } = open();
    session.signIn(A);
    session.receive('signed-out');
    expect(session.state).toEqual({ phase: 'signed-out', reason: 'left' });
    expect([environment.posted, environment.timer]).toEqual([['signed-in'], null]);
  });

  it('starts when another tab signs in', async () => {
    const { session } = open(new Fault('REFRESH_INVALID'), B);
    session.start();
    await session.ready();
    session.receive('signed-in');
    await expect.poll(() => session.state.phase).toBe('signed-in');
  });
});

it.each([
  [A, 900_000],
  ['no token', 900_000],
  [jwt(5, 5), 900_000],
  [jwt(1, 4), 3000],
])('the access token %s is valid for %i ms', (token, ms) => {
  expect(lifetimeMs(token)).toBe(ms);
});
