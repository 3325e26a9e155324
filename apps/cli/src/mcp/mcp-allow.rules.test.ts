import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  ALLOWED_BY_DEFAULT,
  type AllowedTarget,
  isTargetAllowed,
  parseAllowedTarget,
  plainHost,
} from './mcp-allow.rules.ts';

const parsed = (...texts: readonly string[]): AllowedTarget[] =>
  texts.map((text) => {
    const target = parseAllowedTarget(text);
    if (target === null) throw new Error(text);
    return target;
  });

describe('targets that a model may publish', () => {
  const usual = parsed(...ALLOWED_BY_DEFAULT);

  it.each([
    ['127.0.0.1', 1024],
    ['127.0.0.1', 65_535],
    ['localhost', 3000],
    ['LocalHost.', 3000],
    ['::1', 3000],
    ['[::1]', 3000],
    ['0:0:0:0:0:0:0:1', 3000],
  ])('include by default any port of this machine from 1024: %s %i', (host, port) => {
    expect(isTargetAllowed(usual, host, port)).toBe(true);
  });

  it.each([
    ['127.0.0.1', 1023],
    ['127.0.0.1', 22],
    ['127.0.0.2', 3000],
    ['127.1', 3000],
    ['0x7f000001', 3000],
    ['2130706433', 3000],
    ['0.0.0.0', 3000],
    ['::', 3000],
    ['10.0.0.5', 3000],
    ['169.254.169.254', 8080],
    ['localhost.example.com', 3000],
    ['localhost..', 3000],
    ['', 3000],
    ['*', 3000],
    ['127.0.0.1 ', 3000],
    ['127.0.0.1\u0000', 3000],
    ['127.0.0.1.', 3000],
    ['::1.', 3000],
    ['[localhost]', 3000],
    ['[127.0.0.1]', 3000],
    ['[[::1]]', 3000],
    ['::1%lo', 3000],
  ])('exclude by default %s %i', (host, port) => {
    expect(isTargetAllowed(usual, host, port)).toBe(false);
  });

  it("are replaced by the owner's list: a single port, a port range or all ports of a host", () => {
    const allowed = parsed('127.0.0.1:3000', 'db.lan:5432-5440', 'NAS.lan:*', '[fd00::0:1]:80', '192.168.1.5:443');
    const isAllowed = (host: string, port: number): boolean => isTargetAllowed(allowed, host, port);
    expect([isAllowed('localhost', 3000), isAllowed('localhost', 3001)]).toEqual([true, false]);
    expect([isAllowed('DB.lan', 5440), isAllowed('db.lan', 5441), isAllowed('db.lan', 5431)]).toEqual([
      true,
      false,
      false,
    ]);
    expect([isAllowed('nas.lan', 1), isAllowed('nas.lan', 65_535), isAllowed('x.nas.lan', 1)]).toEqual([
      true,
      true,
      false,
    ]);
    expect([isAllowed('fd00::1', 80), isAllowed('fd00:0:0::1', 80), isAllowed('fd00::2', 80)]).toEqual([
      true,
      true,
      false,
    ]);
    expect([isAllowed('::ffff:192.168.1.5', 443), isAllowed('192.168.1.5', 80)]).toEqual([true, false]);
  });

  it.each(['', '3000', ':3000', '127.0.0.1', '127.0.0.1:', '127.0.0.1:0', '127.0.0.1:65536', '127.0.0.1:5-4'])(
    'cannot be written as %s',
    (text) => expect(parseAllowedTarget(text)).toBeNull(),
  );

  it.each(['*:3000', 'a b:1', 'http://a:1', 'a@b:1', '[zz]:1', '[127.0.0.1]:1', '::1:80', '127.0.0.1:1-2-3', 'a:-1'])(
    'cannot be written with another syntax either: %s',
    (text) => expect(parseAllowedTarget(text)).toBeNull(),
  );

  it.each([
    ['[::1]', '::1'],
    ['LocalHost.', 'localhost'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['[::ffff:127.0.0.1]', '127.0.0.1'],
    ['::ffff:7f00:1', '127.0.0.1'],
    ['127.0.0.1', '127.0.0.1'],
  ])('are dialed in the same normalized form that was checked: %s', (asked, dialled) => {
    expect([plainHost(asked), isTargetAllowed(usual, asked, 3000)]).toEqual([dialled, true]);
  });

  it('are normalized only once: a normalized host stays the same', () => {
    const part = fc.constantFrom('localhost', '127.0.0.1', '::1', '::ffff:', '[', ']', '.', '%', '0', 'A', ':');
    fc.assert(
      fc.property(fc.array(part, { maxLength: 6 }), (parts) => {
        const plain = plainHost(parts.join(''));
        expect(plainHost(plain)).toBe(plain);
      }),
      { numRuns: 2000 },
    );
    const odd = ['localhost..', '[[::1]]', '[::1].', '::1.', '127.0.0.1.'];
    expect(odd.map(plainHost)).toEqual(odd);
  });

  it('cover exactly the ports of their range', () => {
    const port = fc.integer({ min: 1, max: 65_535 });
    fc.assert(
      fc.property(port, port, port, (one, other, asked) => {
        const from = Math.min(one, other);
        const to = Math.max(one, other);
        const allowed = parsed(`127.0.0.1:${from}-${to}`);
        expect(isTargetAllowed(allowed, '::1', asked)).toBe(asked >= from && asked <= to);
      }),
    );
  });

  it('are parsed from any text without an exception, and have a valid port range', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const target = parseAllowedTarget(text);
        if (target !== null) expect(1 <= target.from && target.from <= target.to && target.to <= 65_535).toBe(true);
      }),
    );
  });
});
