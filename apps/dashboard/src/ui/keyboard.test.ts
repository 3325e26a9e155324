import { describe, expect, it } from 'vitest';
import { moved, moveForKey, shortcutForKey } from './keyboard.ts';

const press = (key: string, more: { ctrlKey?: boolean; metaKey?: boolean; altKey?: boolean } = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...more,
});

describe('moving in a list by key', () => {
  it('works with letters everywhere, and with arrows only inside the list', () => {
    expect([moveForKey(press('j'), false), moveForKey(press('k'), false)]).toEqual(['next', 'previous']);
    expect([moveForKey(press('ArrowDown'), false), moveForKey(press('ArrowDown'), true)]).toEqual([null, 'next']);
    expect([moveForKey(press('Home'), true), moveForKey(press('End'), true)]).toEqual(['first', 'last']);
  });

  it('leaves the browser its shortcuts', () => {
    expect([moveForKey(press('j', { ctrlKey: true }), true), moveForKey(press('x'), true)]).toEqual([null, null]);
  });
});

describe('the position after a move', () => {
  it('starts at the first entry and stays within the list', () => {
    expect([moved('next', -1, 3), moved('previous', -1, 3)]).toEqual([0, 0]);
    expect([moved('next', 2, 3), moved('previous', 0, 3), moved('next', 0, 3)]).toEqual([2, 0, 1]);
    expect([moved('last', 0, 3), moved('first', 2, 3), moved('next', -1, 0)]).toEqual([2, 0, null]);
  });
});

it.each([
  [press('k', { ctrlKey: true }), false, 'search'],
  [press('K', { metaKey: true }), false, 'search'],
  [press('k', { ctrlKey: true }), true, 'search'],
  [press('k'), false, null],
  [press('k', { ctrlKey: true, altKey: true }), false, null],
  [press('k', { ctrlKey: true, metaKey: true }), false, null],
  [press('?'), false, 'keys'],
  [press('?'), true, null],
  [press('?', { ctrlKey: true }), false, null],
  [press('?', { altKey: true }), false, null],
])('the key %j, while typing: %s, triggers the shortcut %s', (event, isTyping, expected) => {
  expect(shortcutForKey(event, isTyping)).toBe(expected);
});
