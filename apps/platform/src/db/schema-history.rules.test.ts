import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareVersions, isVersion, judgeSchema } from './schema-history.rules.ts';

const KNOWN = ['0001-a', '0002-b'];

const judge = (applied: readonly string[], notes: Readonly<Record<string, string>>, version = '0.2.1') =>
  judgeSchema({ applied, notes: new Map(Object.entries(notes)) }, KNOWN, version);

describe('judgeSchema', () => {
  it('finds the missing migrations, in the order of the known migrations', () => {
    expect(judge([], {})).toEqual({ kind: 'usable', pending: KNOWN, newer: [] });
    expect(judge(['0002-b'], {})).toEqual({ kind: 'usable', pending: ['0001-a'], newer: [] });
    expect(judge(['0002-b', '0001-a'], {})).toEqual({ kind: 'usable', pending: [], newer: [] });
  });

  it('ignores the notes of known migrations', () => {
    expect(judge(KNOWN, { '0001-a': '99.0.0', '0002-b': 'garbage' })).toMatchObject({ kind: 'usable' });
  });

  it.each([
    ['the same version', '0.2.1'],
    ['an older patch', '0.2.0'],
    ['an older minor version', '0.1.9'],
    ['a pre-release of the version', '0.2.1-rc.3'],
    ['build metadata', '0.2.1+build.9'],
  ])('accepts an unknown migration whose note is %s', (_, note) => {
    expect(judge([...KNOWN, '0003-c'], { '0003-c': note })).toEqual({ kind: 'usable', pending: [], newer: ['0003-c'] });
  });

  it.each([
    ['a newer patch', '0.2.2'],
    ['a newer minor version', '0.3.0'],
    ['a newer minor version with fewer digits in its patch', '0.10.0'],
    ['a newer major version', '1.0.0'],
    ['a pre-release of a newer version', '0.2.2-alpha'],
  ])('rejects an unknown migration whose note is %s', (_, note) => {
    const verdict = { kind: 'newer', migration: '0003-c', oldestVersion: note };
    expect(judge([...KNOWN, '0003-c'], { '0003-c': note })).toEqual(verdict);
  });

  it.each([
    '',
    'garbage',
    '0.2',
    'v0.2.0',
    '0.2.0 ',
    '0.2.0\n',
    '00.2.0',
    '0.2.x',
    '-1.0.0',
    '0.2.0-',
    '٠.٢.٠',
    '9999999999.0.0',
  ])('rejects an unknown migration whose note is no version: %j', (note) => {
    const verdict = { kind: 'newer', migration: '0003-c', oldestVersion: null };
    expect(judge([...KNOWN, '0003-c'], { '0003-c': note })).toEqual(verdict);
  });

  it('rejects an unknown migration without a note', () => {
    expect(judge([...KNOWN, '0003-c'], {})).toEqual({ kind: 'newer', migration: '0003-c', oldestVersion: null });
    expect(judge([...KNOWN, '__proto__'], {})).toMatchObject({ kind: 'newer', migration: '__proto__' });
  });

  it('rejects the database if a single unknown migration does not allow the version', () => {
    const notes = { '0003-c': '0.1.0', '0004-d': '0.3.0', '0005-e': '0.1.0' };
    const verdict = { kind: 'newer', migration: '0004-d', oldestVersion: '0.3.0' };
    expect(judge([...KNOWN, '0005-e', '0004-d', '0003-c'], notes)).toEqual(verdict);
  });

  it('rejects a database that has unknown migrations and lacks known migrations', () => {
    const verdict = { kind: 'newer', migration: '0003-c', oldestVersion: null };
    expect(judge(['0001-a', '0003-c'], { '0003-c': '0.1.0' })).toEqual(verdict);
  });

  it('rejects unknown migrations if the own version is older than the note, a pre-release, or no version', () => {
    const versionsThatRun = ['0.1.9', '0.2.0-rc.1', '0.0.0-dev', 'dev', ''].filter(
      (version) => judge([...KNOWN, '0003-c'], { '0003-c': '0.2.0' }, version).kind === 'usable',
    );
    expect(versionsThatRun).toEqual([]);
  });
});

/** The example of semver.org for the order of versions, with a few more. */
const ASCENDING = [
  '0.0.0-dev',
  '0.1.0',
  '0.1.9',
  '0.1.10',
  '0.2.0-9',
  '0.2.0-10',
  '0.2.0',
  '1.0.0-alpha',
  '1.0.0-alpha.1',
  '1.0.0-alpha.beta',
  '1.0.0-beta',
  '1.0.0-beta.2',
  '1.0.0-beta.11',
  '1.0.0-rc.1',
  '1.0.0',
  '10.0.0',
  '999999999.0.0',
];

describe('compareVersions', () => {
  it('has the order of semver.org', () => {
    for (const [at, a] of ASCENDING.entries()) {
      for (const [other, b] of ASCENDING.entries()) {
        expect([a, b, Math.sign(compareVersions(a, b) ?? NaN)]).toEqual([a, b, Math.sign(at - other)]);
      }
    }
  });

  it('does not compare texts that are not versions', () => {
    expect([compareVersions('0.1.0', '1'), compareVersions('1', '0.1.0'), compareVersions('', '')]).toEqual([
      null,
      null,
      null,
    ]);
  });

  it('takes build metadata for equal', () => {
    expect(compareVersions('1.2.3+a', '1.2.3+b')).toBe(0);
  });

  it('is an order, for any versions', () => {
    const identifier = fc.stringMatching(/^[\dA-Za-z-]{1,4}$/);
    const version = fc
      .tuple(fc.nat(3), fc.nat(3), fc.nat(3), fc.array(identifier, { maxLength: 3 }))
      .map(([major, minor, patch, pre]) => `${major}.${minor}.${patch}${pre.length === 0 ? '' : `-${pre.join('.')}`}`);
    const order = (a: string, b: string) => Math.sign(compareVersions(a, b) ?? NaN);
    fc.assert(
      fc.property(version, version, version, (a, b, c) => {
        expect(isVersion(a)).toBe(true);
        expect(order(a, b) + order(b, a)).toBe(0);
        const [x, y, z] = [a, b, c].toSorted(order);
        expect(order(x ?? '', y ?? '') <= 0 && order(y ?? '', z ?? '') <= 0 && order(x ?? '', z ?? '') <= 0).toBe(true);
      }),
    );
  });
});
