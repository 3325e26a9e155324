import { expect, it } from 'vitest';
import { lastProblem } from './programs.ts';

it.each([
  ['', undefined],
  ['\n \n', undefined],
  ['starting\nready\n', 'ready'],
  ['FATAL: no room\nHINT: make some\n', 'FATAL: no room'],
  ['initdb: error: first\ncould not write: last\nremoving the folder\n', 'could not write: last'],
])('from the PostgreSQL output %j the reported problem is %j', (text, problem) => {
  expect(lastProblem(text)).toBe(problem);
});
