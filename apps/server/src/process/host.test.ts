import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { isBrief, logFormatOf, thisProcess } from './host.ts';

it('log lines are human-readable at a terminal and JSON elsewhere, unless TUNNEL_LOG is set', () => {
  const elsewhere = new PassThrough();
  const terminal = Object.assign(new PassThrough(), { isTTY: true });
  expect(logFormatOf({ env: {}, stderr: elsewhere })).toBe('json');
  expect(logFormatOf({ env: {}, stderr: terminal })).toBe('human');
  expect(logFormatOf({ env: { TUNNEL_LOG: 'human' }, stderr: elsewhere })).toBe('human');
  expect(logFormatOf({ env: { TUNNEL_LOG: 'json' }, stderr: terminal })).toBe('json');
  expect(logFormatOf({ env: { TUNNEL_LOG: 'xml' }, stderr: elsewhere })).toBe('json');
});

it('the start screen is brief only if stdout and stderr are terminals and --verbose is not given', () => {
  const elsewhere = new PassThrough();
  const terminal = Object.assign(new PassThrough(), { isTTY: true });
  expect(isBrief({ stdout: terminal, stderr: terminal }, false)).toBe(true);
  expect(isBrief({ stdout: terminal, stderr: terminal }, true)).toBe(false);
  expect(isBrief({ stdout: elsewhere, stderr: terminal }, false)).toBe(false);
  expect(isBrief({ stdout: terminal, stderr: elsewhere }, false)).toBe(false);
});

it('the host of a server is the current process', () => {
  const host = thisProcess();
  expect([host.pid, host.workingDir, host.parent]).toEqual([process.pid, process.cwd(), process]);
  expect(host.uptimeMs()).toBeGreaterThan(0);
  const before = process.listeners('uncaughtException');
  const listener = (): void => {};
  host.onUncaught(listener);
  try {
    expect(process.listeners('uncaughtException')).toEqual([...before, listener]);
  } finally {
    process.off('uncaughtException', listener);
  }
});
