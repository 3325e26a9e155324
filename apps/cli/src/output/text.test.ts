// Fitting lines to the width of a terminal: the visible columns count, not the characters.
import { expect, it } from 'vitest';
import { columns, cutVisible, visibleLength } from './text.ts';

it.each([
  ['plain', 5],
  ['\u001b[32mgreen\u001b[39m', 5],
  ['東京', 4],
  ['한국어', 6],
  ['🚀 up', 5],
  ['e\u0301', 1],
  ['a\u200bb', 2],
  ['é… ─ →', 6],
])('the text %j takes %i columns on screen', (line, width) => {
  expect(visibleLength(line)).toBe(width);
});

it.each([
  ['東京都', 6, '東京都'],
  ['東京都', 5, '東京…'],
  ['東京都', 4, '東…'],
  ['🚀🚀', 3, '🚀…'],
  ['\u001b[32m東京都\u001b[39m', 5, '\u001b[32m東京…\u001b[39m'],
  ['plain text', 6, 'plain…'],
])('the text %j is cut to %i columns on screen', (line, width, cut) => {
  expect(cutVisible(line, width)).toBe(cut);
  expect(visibleLength(cut)).toBeLessThanOrEqual(width);
});

it('table columns are aligned by their width on screen, not by characters', () => {
  expect(
    columns([
      ['東京', 'a'],
      ['tokyo', 'b'],
    ]),
  ).toEqual(['  東京   a', '  tokyo  b']);
});
