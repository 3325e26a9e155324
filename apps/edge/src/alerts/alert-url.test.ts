import type { NameLookup } from '@tunnel/runtime';
import { FakeClock } from '@tunnel/testkit';
import { describe, expect, it } from 'vitest';
import { AlertUrls } from './alert-url.ts';

const never: NameLookup = () => new Promise(() => {});
const answering =
  (...addresses: string[]): NameLookup =>
  () =>
    Promise.resolve(addresses);
const urlsOf = (lookup: NameLookup, allowPrivate = false, clock = new FakeClock()): AlertUrls =>
  new AlertUrls({ allowPrivate, clock, lookup });

describe('an alert URL', () => {
  it.each([
    ['', 'alert webhook rejected: it is not a URL'],
    ['ftp://hooks.example/', 'alert webhook rejected: it is not an http or https URL'],
    ['http://bob:hunter2@hooks.example/x', 'alert webhook rejected: the URL for hooks.example has a user name in it'],
    ['http://10.0.0.5/s3cret', 'alert webhook rejected: 10.0.0.5 is a private address'],
    [`https://hooks.example/${'x'.repeat(2048)}`, 'alert webhook rejected: it is too long'],
  ])('%j is refused without a DNS lookup', async (text, warning) => {
    expect(await urlsOf(() => Promise.reject(new Error('asked'))).checkAtRegistration(text)).toBe(warning);
  });

  it('is refused if its hostname resolves to a private address, and the message names only the host', async () => {
    const warning = await urlsOf(answering('10.0.0.5')).checkAtRegistration(
      'http://hooks.internal/s3cret?token=s3cret',
    );
    expect(warning).toBe('alert webhook rejected: hooks.internal resolves to a private address');
  });

  it('can point to a private address if private addresses are allowed', async () => {
    expect(await urlsOf(answering('10.0.0.5'), true).checkAtRegistration('http://hooks.internal/')).toBeNull();
    expect(await urlsOf(never, true).checkAtRegistration('http://127.0.0.1:9000/')).toBeNull();
  });

  it('is accepted without a DNS lookup if its host is a public address', async () => {
    const urls = urlsOf(() => Promise.reject(new Error('asked')));
    expect(await urls.checkAtRegistration('https://1.1.1.1/x')).toBeNull();
  });

  it('gets a warning if its hostname does not resolve', async () => {
    const warning = 'alert webhook: typo.example does not resolve right now';
    expect(await urlsOf(answering()).checkAtRegistration('https://typo.example/s3cret')).toBe(warning);
    const failing = urlsOf(() => Promise.reject(new Error('ENOTFOUND')));
    expect(await failing.checkAtRegistration('https://typo.example/s3cret')).toBe(warning);
  });
});

describe('the check of an alert URL at registration', () => {
  it('gives up after 1 s and leaves no timer', async () => {
    const clock = new FakeClock();
    let isAborted = false;
    const urls = urlsOf(
      (_name, signal) => {
        signal.addEventListener('abort', () => (isAborted = true));
        return new Promise(() => {});
      },
      false,
      clock,
    );
    const check = urls.checkAtRegistration('https://slow.example/');
    await clock.advance(999);
    expect(isAborted).toBe(false);
    await clock.advance(1);
    expect(await check).toBeNull();
    expect(isAborted).toBe(true);
    expect(clock.pendingTimers).toBe(0);
  });

  it('takes no longer than the time left; without time left it refuses only URLs that need no DNS lookup', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const silent = (): Promise<never> => {
      asked += 1;
      return new Promise(() => {});
    };
    const urls = urlsOf(silent, false, clock);
    const check = urls.checkAtRegistration('https://slow.example/', 300);
    await clock.advance(300);
    expect([await check, asked]).toEqual([null, 1]);
    expect([await urls.checkAtRegistration('https://slow.example/', 0), asked]).toEqual([null, 1]);
    expect(await urls.checkAtRegistration('http://127.0.0.1/', 0)).toMatch(/is a loopback address$/);
  });

  it('looks up at most 64 names at once; further registrations get no warning', async () => {
    const clock = new FakeClock();
    let asked = 0;
    const urls = urlsOf(
      () => {
        asked += 1;
        return new Promise(() => {});
      },
      false,
      clock,
    );
    const checks = Array.from({ length: 100 }, (_, n) => urls.checkAtRegistration(`https://h${n}.example/`));
    expect(await checks[99]).toBeNull();
    expect(asked).toBe(64);
    await clock.advance(1000);
    expect(new Set(await Promise.all(checks))).toEqual(new Set([null]));
    const oneMore = urls.checkAtRegistration('https://later.example/');
    expect(asked).toBe(65);
    await clock.advance(1000);
    await oneMore;
  });
});
