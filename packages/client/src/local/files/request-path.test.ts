import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { acceptsHtml, folderTarget, isServedName, readRequestPath } from './request-path.ts';

const namesOf = (target: string, separator: '/' | '\\' = '/') => readRequestPath(target, separator)?.names ?? null;

describe('a request target', () => {
  it.each([
    ['/', []],
    ['/a.txt', ['a.txt']],
    ['/a/b/', ['a', 'b']],
    ['/a%20b?x=/..', ['a b']],
    ['/%C3%BC%E2%98%83', ['ü☃']],
    ['/100%25', ['100%']],
    ['/%2541', ['%41']],
    ['/new%0Aline', ['new\nline']],
    ['/a\\b', ['a\\b']],
  ])('%s names %j', (target, names) => {
    expect(namesOf(target)).toEqual(names);
  });

  it.each([
    ...['', '*', 'a', 'http://a/b', '//a', '/a//b', '/..', '/../a', '/a/../b', '/%2e%2e/a', '/%2E./a', '/.', '/./a'],
    ...[
      '/.env',
      '/a/.git/config',
      '/%2eenv',
      '/%00',
      '/a%00.txt',
      '/a%2fb',
      '/..%2fa',
      '/%',
      '/%zz',
      '/%ff',
      '/%c0%ae',
    ],
  ])('%s names no file', (target) => {
    expect(readRequestPath(target, '/')).toBeNull();
  });

  it('with backslashes, drives or NTFS streams names no file on Windows', () => {
    for (const target of ['/a\\b', '/..%5ca', '/a%5cb', '/C:', '/a.txt::$DATA'])
      expect(namesOf(target, '\\')).toBeNull();
    expect(namesOf('/a.txt', '\\')).toEqual(['a.txt']);
  });

  it('of any form names only files below the folder that are not hidden', () => {
    const part = fc.constantFrom(
      '..',
      '.',
      '%2e',
      '%2E',
      '%2f',
      '/',
      '//',
      '%00',
      'a',
      '%5c',
      '\\',
      '%',
      '?',
      '#',
      'ü',
      '%c3%bc',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 12 }), (parts) => {
        const names = namesOf(`/${parts.join('')}`) ?? [];
        expect(names.every((name) => isServedName(name, '/') && !/^\.|\/|\0/.test(name))).toBe(true);
      }),
    );
  });

  it('exists for every path that can be served', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }).filter((name) => isServedName(name, '/'))), (names) => {
        const target = folderTarget({ names, search: '' });
        expect(target).toMatch(/^\/([!-~]*\/)?$/);
        expect(target.startsWith('//')).toBe(false);
        expect(readRequestPath(target, '/')).toEqual({ names, isFolder: true, search: '' });
      }),
    );
  });
});

it.each([
  ['text/html,application/xhtml+xml,*/*;q=0.8', true],
  ['application/json, text/html;level=1;q=0.5', true],
  ['TEXT/HTML', true],
  ['*/*', false],
  ['text/*', false],
  ['text/html;q=0', false],
  ['text/html; q=0.0, application/json', false],
  ['text/htmlx', false],
  ['', false],
])('whether an Accept header of %s asks for a page: %s', (accept, does) => {
  expect(acceptsHtml(accept)).toBe(does);
});
