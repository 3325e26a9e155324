import { readFileSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PATH_CORPUS } from './path-corpus.fixture.ts';
import { POLICY_READINGS_MAX, RequestReadings, readingsOf } from './path-readings.ts';
import { compileMatch } from './rule-match.ts';

const hidden = compileMatch({ path: ['/admin/**'] }, true);
const open = compileMatch({ path: ['/public/**'] }, false);
const asked = { method: 'GET', address: '192.0.2.1', headers: [], host: 'a', authority: 'a' };
const isHidden = (path: string): boolean => hidden.matches(asked, new RequestReadings(path));
const isOpen = (path: string): boolean => open.matches(asked, new RequestReadings(path));

describe('readings of a path', () => {
  it.each([
    ['/', ['/']],
    ['*', ['/']],
    ['/a/b', ['/a/b']],
    ['/a/b/', ['/a/b']],
    ['/a?/../b;c%2f', ['/a']],
    ['/?', ['/']],
    ['/.well-known/x', ['/.well-known/x']],
    ['/a%20b', ['/a b']],
    ['/%2561', ['/%61']],
    ['/Ab', ['/Ab', '/ab']],
    ['/%41b', ['/Ab', '/ab']],
    ['/a//b', ['/a/b']],
    ['/a/../b', ['/b', '/a/../b']],
    ['/a%2Fb', ['/a%2fb', '/a/b']],
    ['/a\\b', ['/a\\b', '/a/b']],
    ['/a%5cb', ['/a%5cb', '/a/b']],
    ['/a;x/b', ['/a;x/b', '/a/b']],
    ['/a;X/B', ['/a;X/B', '/a/B', '/a;x/b', '/a/b']],
    ['/a%2Fb;x', ['/a%2fb;x', '/a/b;x', '/a%2fb', '/a/b']],
    ['//a/b', ['/a/b', '/b']],
    ['/../..', ['/', '/../..']],
    ['/a./b', ['/a./b', '/a/b']],
    ['/a%20', ['/a ', '/a']],
    ['/a%3Fb', ['/a?b', '/a']],
    ['/%u0061', ['/%u0061', '/a']],
    ['/%2fa/b', ['/%2fa/b', '/a/b', '/b']],
    ['/a%0Ab', ['/a\nb', '/ab']],
    ['/%C4%B1', ['/ı', '/i']],
    ['/a::$x', ['/a::$x', '/a']],
    ['/a.b/..c', ['/a.b/..c']],
  ])('of %s are %j', (path, texts) => {
    const readings = readingsOf(path);
    expect(readings.all).toEqual(texts);
    expect(readings.isUnclear).toBe(false);
  });

  it('of an ordinary path are the path itself, without further objects', () => {
    const readings = readingsOf('/assets/app.js?v=12');
    expect([readings.plain, readings.others.length, readings.hasUpper]).toEqual(['/assets/app.js', 0, false]);
    expect(readingsOf('/a').others).toBe(readingsOf('/b').others);
  });

  it('of a path with too many oddities are unclear: restricting rules match it, other rules do not', () => {
    const path = '/public/a%2fb%5cc\\d;e';
    expect(readingsOf(path).isUnclear).toBe(true);
    expect([isHidden(path), isOpen(path)]).toEqual([true, false]);
  });

  const piece = fc.constantFrom(
    ...[
      '/',
      '/',
      '/',
      '\\',
      '%2f',
      '%5C',
      ';',
      '%3b',
      '.',
      '..',
      '%2e',
      '%2E.',
      'admin',
      'public',
      'ADMIN',
      'x',
      '%61dmin',
    ],
    ...['?', '%', '%25', ';x', '/..', '/../', '/admin', '/public', '//', '%20', '%3f', '%0a'],
  );
  const path = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join('')}`);

  it('are at most eight, all different, and each is a resolved path', () => {
    fc.assert(
      fc.property(path, (text) => {
        const { plain, others, folded, all } = readingsOf(text);
        expect(all.length).toBeLessThanOrEqual(POLICY_READINGS_MAX);
        expect(new Set([plain, ...others]).size).toBe(1 + others.length);
        expect(new Set(folded).size).toBe(folded.length);
        for (const one of all) expect(one).toMatch(/^\/(?:$|[^/])/);
        expect(plain).not.toMatch(/\/\/|\/\.\.?(?:\/|$)|.\/$/);
      }),
      { numRuns: 3000 },
    );
  });

  it('are computed in under 1 s for long and unusual paths', () => {
    const begun = performance.now();
    for (const part of [
      '/a.',
      '.',
      '%20',
      '%u0020',
      '%3f',
      ':$',
      '/..',
      '/%2e%2e',
      '/a;b',
      '%2f',
      '/a%2fb',
      '\\..',
      '%ff',
      '%0a',
      '%C4%B1',
      '%EF%B7%BA',
      '/%C3',
      '/;%3b',
      '//',
      '/.',
    ])
      void readingsOf(part.repeat(Math.floor(30_000 / part.length)).replace(/^[^/]/, '/$&')).all;
    expect(performance.now() - begun).toBeLessThan(1000);
  });

  it('do not depend on the query', () => {
    fc.assert(
      fc.property(path, fc.string(), (text, query) => {
        const [before = ''] = text.split('?');
        expect(readingsOf(`${before}?${query}`).all).toEqual(readingsOf(before).all);
      }),
      { numRuns: 1000 },
    );
  });

  /** Random interpretation of a path by a service. Real services exist for every option. */
  const service = fc.record({
    /** When the service resolves the path against a base URL: never, on the raw path, or before or after encoded separators are decoded. */
    base: fc.constantFrom('no', 'raw', 'first', 'last'),
    /** Whether a backslash ends the host of a URL, as in browsers. In other parsers only a slash does. */
    isHostEndedByBackslash: fc.boolean(),
    leavesOutBreaks: fc.boolean(),
    separators: fc.subarray(['\\', '%2f', '%5c']),
    cuts: fc.subarray([';', '%3b']),
    dots: fc.constantFrom('kept', 'literal', 'all'),
    areEmptyFirst: fc.boolean(),
    decodes: fc.boolean(),
    folds: fc.boolean(),
    endsAtQuestion: fc.boolean(),
    trims: fc.boolean(),
  });

  type Service = typeof service extends fc.Arbitrary<infer T> ? T : never;

  /** Returns a segment as read by Windows: without dots and blanks at the end. */
  const trimmed = (segment: string): string => {
    const bare = segment.replace(/(?:%20)+$/, '');
    return /^(?:\.|%2e){1,2}$/i.test(bare) ? bare : bare.replace(/(?:\.|%2e|%20)+$/i, '');
  };

  const withoutHost = (text: string, { isHostEndedByBackslash }: Service): string =>
    isHostEndedByBackslash ? text.replace(/^\/[/\\]+[^/\\]*[/\\]?/, '/') : text.replace(/^\/\/+[^/]*\/?/, '/');

  const seenBy = (text: string, how: Service): string => {
    let path_ = text.split('?')[0]!;
    if (how.base === 'raw') path_ = withoutHost(path_, how);
    if (how.endsAtQuestion) path_ = path_.split(/%3f/i)[0]!;
    if (how.leavesOutBreaks) path_ = path_.replaceAll(/%0a/gi, '');
    if (how.base === 'first') path_ = withoutHost(path_, how);
    for (const separator of how.separators)
      path_ = path_.split(new RegExp(separator.replace('\\', '\\\\'), 'i')).join('/');
    if (how.base === 'last') path_ = withoutHost(path_, how);
    let segments = path_.split('/').slice(1);
    for (const cut of how.cuts) segments = segments.map((segment) => segment.split(new RegExp(cut, 'i'))[0]!);
    if (how.trims) segments = segments.map(trimmed);
    if (how.areEmptyFirst) segments = segments.filter((segment) => segment !== '');
    const found: string[] = [];
    for (const segment of segments) {
      const name = how.dots === 'all' ? segment.replaceAll(/%2e/gi, '.') : segment;
      if (how.dots === 'kept' || (name !== '.' && name !== '..')) found.push(segment);
      else if (name === '..') found.pop();
    }
    const joined = found.filter((segment) => segment !== '').join('/');
    const decoded = how.decodes
      ? joined.replaceAll(/%(?!2f|5c)([0-7][0-9a-f])/gi, (_, hex) =>
          String.fromCharCode(Number.parseInt(hex as string, 16)),
        )
      : joined;
    return `/${how.folds ? decoded.toLowerCase() : decoded}`;
  };

  const isBelow = (text: string, folder: string): boolean => text === folder || text.startsWith(`${folder}/`);

  it('no spelling that a service resolves to the hidden path escapes the rule that hides it', () => {
    fc.assert(
      fc.property(path, service, (text, how) => {
        if (isBelow(seenBy(text, how), '/admin')) expect(isHidden(text)).toBe(true);
      }),
      { numRuns: 20_000 },
    );
  });

  it('no spelling that a service resolves to the hidden path is let through', () => {
    fc.assert(
      fc.property(path, service, (text, how) => {
        if (isOpen(text)) expect(isBelow(seenBy(text, how), '/admin')).toBe(false);
      }),
      { numRuns: 20_000 },
    );
  });
});

describe('the corpus of path spellings', () => {
  it('has at least sixty spellings of /admin, each only once', () => {
    expect(PATH_CORPUS.filter(({ must }) => must === 'hide').length).toBeGreaterThanOrEqual(60);
    expect(new Set(PATH_CORPUS.map(({ target }) => target)).size).toBe(PATH_CORPUS.length);
  });

  it('equals path-corpus.json', () => {
    const file = new URL('path-corpus.json', import.meta.url);
    const text = `[\n${PATH_CORPUS.map((one) => `  ${JSON.stringify(one).replaceAll('":', '": ').replaceAll(',"', ', "').replace('{', '{ ').replace(/\}$/, ' }')}`).join(',\n')}\n]\n`;
    if (process.env['UPDATE_DOCS'] === '1') writeFileSync(file, text);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(PATH_CORPUS);
  });

  const paths = PATH_CORPUS.filter(({ path }) => path !== null);
  it.each(paths)('$must: $target', ({ path, must }) => {
    expect([isHidden(path!), isOpen(path!)]).toEqual([must === 'hide', must === 'allow']);
  });
});
