import { expect, test } from 'vitest';
import { formatForPeople } from './human-format.ts';

const line = (fields: object): string => JSON.stringify({ level: 'info', time: '2030-01-02T03:04:05.678Z', ...fields });

test('one short line: time, level, message, fields', () => {
  expect(formatForPeople(line({ port: 4040, name: 'a b', msg: 'listening' }), false)).toBe(
    '03:04:05 INFO  listening port=4040 name="a b"\n',
  );
  expect(formatForPeople(line({ msg: 'ready' }), false)).toBe('03:04:05 INFO  ready\n');
});

test('an error is its message; the stack would be many lines', () => {
  const err = { type: 'Error', message: 'no\nway', stack: 'Error: no\n  at x' };
  expect(formatForPeople(line({ err, msg: 'failed' }), false)).toBe('03:04:05 INFO  failed err="no\\nway"\n');
});

test('data cannot forge a line or steer the terminal', () => {
  const text = formatForPeople(line({ name: '\u001b[2J\n\u009b', msg: 'a\nERROR forged\u001b[31m' }), false);
  expect(text.match(/\n/g)).toHaveLength(1);
  expect(text.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
});

test('nor turn the direction of a line: what a member says of its health is in the log', () => {
  const text = formatForPeople(line({ reason: 'a\u202eb', label: '\u2066x', msg: 'down\u2028\u200f' }), false);
  expect(text).toBe('03:04:05 INFO  down?? reason="a?b" label="?x"\n');
});

test('colour only when asked for', () => {
  expect(formatForPeople(line({ msg: 'x' }), true)).toContain('\u001b[36mINFO');
});
