import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { claim, release } from './holder.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'tunnel-holder-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

it('is one process, until it lets go', () => {
  expect(claim(root)).toBeUndefined();
  expect(claim(root)).toBe(process.pid);
  release(root);
  expect(claim(root)).toBeUndefined();
  expect(readdirSync(root)).toEqual(['holder.json']);
});

it.each(['', 'not json', '{}', '{"pid":999999999,"began":"once"}', `{"pid":${process.pid},"began":"before the boot"}`])(
  'that left %j behind holds nothing',
  (text) => {
    writeFileSync(join(root, 'holder.json'), text);
    expect(claim(root)).toBeUndefined();
    expect(JSON.parse(readFileSync(join(root, 'holder.json'), 'utf8'))).toMatchObject({ pid: process.pid });
  },
);

it('that is another one keeps its file', () => {
  writeFileSync(join(root, 'holder.json'), '{"pid":1,"began":"at the boot"}');
  release(root);
  expect(existsSync(join(root, 'holder.json'))).toBe(true);
});
