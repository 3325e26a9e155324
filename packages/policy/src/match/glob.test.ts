import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { foldCase } from '../text/percent.ts';
import { compileGlob, type GlobKind, POLICY_GLOB_WILDCARDS_MAX, problemOfGlob, stepsOfGlob } from './glob.ts';

/** Naive matcher: tries every possible meaning of a glob in turn. Slow, but easy to verify. `at` and `from` only move forward. */
const naive = (glob: string, text: string, kind: GlobKind): boolean => {
  const known = new Map<string, boolean>();
  const tries = (at: number, from: number): boolean => {
    const key = `${at} ${from}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const found = step(at, from);
    known.set(key, found);
    return found;
  };
  const step = (at: number, from: number): boolean => {
    if (at === glob.length) return from === text.length;
    if (glob[at] !== '*') {
      if (kind === 'path' && isWholeSegment(at) && tries(at + 3, from)) return true;
      return glob[at] === text[from] && tries(at + 1, from + 1);
    }
    const isAny = kind === 'value' || glob[at + 1] === '*';
    let after = at;
    while (glob[after] === '*') after += 1;
    if (tries(after, from)) return true;
    return from < text.length && (isAny || text[from] !== '/') && tries(at, from + 1);
  };
  /** Whether `/**` before a slash or the end starts at this position. The segments can be empty. */
  const isWholeSegment = (at: number): boolean =>
    at >= 0 && glob.startsWith('/**', at) && (at + 3 === glob.length || glob[at + 3] === '/');
  return tries(0, 0);
};

const matches = (glob: string, text: string): boolean => compileGlob(glob, 'path')(text);

describe('a path glob', () => {
  it.each([
    ['/admin', ['/admin'], ['/', '/admin/x', '/admins', '/Admin', '/x/admin']],
    ['/admin/', ['/admin'], ['/', '/admin/x']],
    ['/admin/**', ['/admin', '/admin/x', '/admin/x/y'], ['/', '/administrator', '/x/admin']],
    ['/admin/*', ['/admin/x'], ['/admin', '/admin/x/y']],
    ['/**', ['/', '/x', '/x/y'], []],
    ['**', ['/', '/x', '/x/y'], []],
    ['/*', ['/x', '/'], ['/x/y']],
    ['/a**', ['/a', '/ab', '/a/b'], ['/b']],
    ['**.php', ['/x.php', '/a/b.php'], ['/x.php/y']],
    ['/a/**/b', ['/a/b', '/a/x/b', '/a/x/y/b', '/a/b/b'], ['/a/xb', '/ab', '/a/b/c']],
    ['/a/**/**/b', ['/a/b', '/a/x/b'], ['/ab']],
    ['**/b/**', ['/b', '/a/b', '/a/b/c'], ['/ab', '/a/bc']],
    ['/v*/users/*', ['/v1/users/7', '/v/users/x'], ['/v1/users', '/v1/x/users/7', '/v1/users/7/x']],
    ['/*a*b', ['/ab', '/xaxxb', '/aab', '/abb'], ['/a/b', '/ba']],
    ['**x*y**', ['/xy', '/xq/xy', '/x/x/xqy', '/xy/z'], ['/x/y', '/yx']],
    ['/a*/**', ['/a', '/ab', '/ab/c', '/a/c'], ['/b']],
    ['/caf%C3%A9', ['/café'], ['/caf%C3%A9']],
    ['/a%20b', ['/a b'], ['/a%20b']],
    ['/p/a%2Fb', ['/p/a%2fb'], ['/p/a/b']],
    ['/a%2Ab', ['/a*b'], ['/axb']],
  ])('%s', (glob, fitting, others) => {
    expect(fitting.filter((text) => !matches(glob, text))).toEqual([]);
    expect(others.filter((text) => matches(glob, text))).toEqual([]);
    expect(problemOfGlob(glob, 'path')).toBeNull();
  });

  it('matches the same paths as a search through all possibilities', () => {
    const glob = fc
      .array(fc.constantFrom('a', 'b', '/', '*', '**', 'ab'), { maxLength: 9 })
      .map((parts) => `/${parts.join('')}`.replace(/\/{2,}/g, '/'));
    const text = fc
      .array(fc.constantFrom('a', 'b', '/', 'ab'), { maxLength: 10 })
      .map((parts) => `/${parts.join('')}`.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1'));
    fc.assert(
      fc.property(glob, text, (pattern, path) => {
        const simple = pattern
          .replace(/\*{3,}/g, '**')
          .replace(/(?:\/\*\*)+(?=\/|$)/g, '/**')
          .replace(/(.)\/$/, '$1');
        expect(matches(pattern, path)).toBe(naive(simple, path, 'path'));
      }),
      { numRuns: 5000 },
    );
  });

  it('still matches a path when case is ignored', () => {
    const word = fc.array(fc.constantFrom('A', 'b', 'É', 'Σ', 'ß', 'İ', 'K', 'ſ', 'ẞ'), { maxLength: 5 });
    fc.assert(
      fc.property(word, word, word, (before, inside, after) => {
        const glob = `/${before.join('')}**${after.join('')}`;
        const text = `/${[...before, ...inside, ...after].join('')}`;
        expect(compileGlob(glob, 'path', true)(foldCase(text))).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it('takes linear time for a hostile path', () => {
    const text = `/${'a/'.repeat(16_000)}${'a'.repeat(700)}`;
    const glob = `/**${'a*a*b/**'.repeat(4)}b`;
    expect(stepsOfGlob(glob)).toBeLessThanOrEqual(POLICY_GLOB_WILDCARDS_MAX);
    const begun = performance.now();
    for (let count = 0; count < 20; count += 1) expect(matches(glob, text)).toBe(false);
    // Backtracking would take a second for a single match.
    expect(performance.now() - begun).toBeLessThan(1000);
  });
});

describe('a value glob', () => {
  it.each([
    ['*curl*', ['curl/8', 'x curl', 'a/curl/b'], ['Curl', 'wget']],
    ['text/*', ['text/html', 'text/a/b', 'text/'], ['atext/html']],
    ['a*b*c', ['abc', 'axbxc', 'a/b/c', 'abbcc'], ['ab', 'acb']],
    ['100%25', ['100%25'], ['100%']],
    ['', [''], ['x']],
    ['*', ['', 'x', '/'], []],
  ])('%s', (glob, fitting, others) => {
    const test = compileGlob(glob, 'value');
    expect(fitting.filter((text) => !test(text))).toEqual([]);
    expect(others.filter((text) => test(text))).toEqual([]);
    expect(problemOfGlob(glob, 'value')).toBeNull();
  });

  it('matches the same values as a search through all possibilities', () => {
    const letters = (more: string[]) =>
      fc.array(fc.constantFrom('a', 'b', '/', ...more), { maxLength: 9 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(letters(['*', '*']), letters([]), (glob, text) => {
        expect(compileGlob(glob, 'value')(text)).toBe(naive(glob, text, 'value'));
      }),
      { numRuns: 3000 },
    );
  });
});

describe('a glob that can never match is refused', () => {
  it.each([
    ['', 'a path must start with / or **'],
    ['admin', 'a path must start with / or **'],
    ['*.php', 'a path must start with / or **'],
    ['/a?b=1', 'paths are matched without the query; remove ? and #'],
    ['/a#b', 'paths are matched without the query; remove ? and #'],
    ['//a', 'paths are matched without empty segments; use a single /'],
    ['/a/../b', 'paths are matched with . and .. resolved; remove both'],
    ['/./a', 'paths are matched with . and .. resolved; remove both'],
    ['/a\nb', 'a glob cannot have control characters'],
    [`/${'*a'.repeat(17)}`, 'a glob can have at most 16 wildcards'],
  ])('%j: %s', (glob, problem) => {
    expect(problemOfGlob(glob, 'path')).toBe(problem);
  });

  it('if it is longer than 1024 characters, for paths and for values', () => {
    const glob = `/${'a'.repeat(1024)}`;
    expect(problemOfGlob(glob, 'path')).toBe('a glob can have at most 1024 characters');
    expect(problemOfGlob(glob, 'value')).toBe('a glob can have at most 1024 characters');
  });
});
