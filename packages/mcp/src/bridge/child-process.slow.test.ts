// Misbehaving shell programs: the bridge reports the problem, and no program stays alive.

import type { JSONRPCMessage } from '@modelcontextprotocol/client';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually, FakeClock } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { ChildProcess, CLOSED_PIPE_MS } from './child-process.ts';
import { STOP_STEP_MS } from './group-watch.ts';

interface ChildUnderTest {
  readonly child: ChildProcess;
  readonly clock: FakeClock;
  readonly messages: JSONRPCMessage[];
  readonly isOver: () => boolean;
}

const started: ChildUnderTest[] = [];

const run = async (script: string): Promise<ChildUnderTest> => {
  const clock = new FakeClock();
  const messages: JSONRPCMessage[] = [];
  let isOver = false;
  const command = { command: '/bin/sh', args: ['-c', script], env: process.env, cwd: '/' };
  const child = new ChildProcess(command, { clock, onStderr: () => {} });
  child.onmessage = (message) => messages.push(message);
  child.onclose = () => (isOver = true);
  await child.start();
  const under = { child, clock, messages, isOver: () => isOver };
  started.push(under);
  return under;
};

afterEach(async () => {
  for (const { child, clock } of started.splice(0)) {
    const closed = child.close();
    await clock.advance(3 * STOP_STEP_MS);
    await closed;
    expect(clock.pendingTimers).toBe(0);
  }
});

describe('a program that keeps running', () => {
  it.each([
    ['its stdout', 'exec >&-; sleep 60'],
    ['its stdin', 'exec <&-; sleep 60'],
  ])('after it has closed %s is killed', async (pipe, script) => {
    const { child, clock, isOver } = await run(script);
    // Only a write reveals a closed stdin.
    await eventually(async () => {
      await child.send({ jsonrpc: '2.0', method: 'ping' }).catch(() => {});
      expect(clock.pendingTimers).toBe(1);
    });
    await clock.advance(CLOSED_PIPE_MS - 1);
    expect(isOver()).toBe(false);
    await clock.advance(1);
    await eventually(() => expect(isOver()).toBe(true));
    expect([child.end, child.endedByItself]).toEqual([`the server closed ${pipe.replace(/^its /, '')}`, true]);
    expect(isProcessAlive(child.pid ?? 0)).toBe(false);
  });
});

describe('an invalid JSON-RPC answer', () => {
  it.each([
    ['no result and no error', '{"jsonrpc":"2.0","id":7}'],
    ['a null result', '{"jsonrpc":"2.0","id":7,"result":null}'],
    ['both a result and an error', '{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}'],
    ['an invalid error code', '{"jsonrpc":"2.0","id":7,"error":{"code":1.5,"message":"m"}}'],
    ['no JSON-RPC version', '{"id":7,"result":{}}'],
  ])('(%s) becomes an error for the waiting call', async (_, line) => {
    const { messages } = await run(`echo '${line}'; cat >/dev/null`);
    const message = "the MCP server's response is not valid JSON-RPC";
    await eventually(() => expect(messages).toEqual([{ jsonrpc: '2.0', id: 7, error: { code: -32603, message } }]));
  });

  it('is ignored if no call waits for it, and later answers still arrive', async () => {
    const { messages } = await run(
      `echo '{"jsonrpc":"2.0","id":null,"result":{}}'; echo '{"jsonrpc":"2.0","id":{}}'; echo '{"jsonrpc":"2.0","id":8,"result":{}}'; cat >/dev/null`,
    );
    await eventually(() => expect(messages).toHaveLength(3));
    expect(messages.at(-1)).toEqual({ jsonrpc: '2.0', id: 8, result: {} });
  });
});
