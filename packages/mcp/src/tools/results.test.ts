import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { boundedOutput, failedResult, goodResult, TOOL_RESULT_MAX_BYTES } from './results.ts';
import { requestOf } from './scripted-host.fixture.ts';

const bytesOf = (output: Readonly<Record<string, unknown>>): number =>
  Buffer.byteLength(JSON.stringify(goodResult(output)));

const MAX = TOOL_RESULT_MAX_BYTES;

describe('the size limit of a tool result', () => {
  it('keeps a result that fits unchanged', () => {
    const output = { requests: [requestOf()], truncated: false };
    expect(boundedOutput(output, 'requests')).toBe(output);
  });

  it('removes only as many entries from the end of a list as necessary, and sets truncated', () => {
    const entries = Array.from({ length: 5000 }, (_, id) => ({ id, path: '"'.repeat(100) }));
    const cut = boundedOutput({ requests: entries, truncated: false, untrusted: true }, 'requests');
    const kept = cut['requests'] as { id: number }[];
    expect(kept).toEqual(entries.slice(0, kept.length));
    expect(cut).toMatchObject({ truncated: true, untrusted: true });
    expect(bytesOf(cut)).toBeLessThanOrEqual(MAX);
    expect(bytesOf({ ...cut, requests: entries.slice(0, kept.length + 5) })).toBeGreaterThan(MAX - 2048);
  });

  it.each([
    [
      'bodies of characters that need six bytes each',
      { request_body: '\u0001'.repeat(16_384), response_body: '\u0001'.repeat(16_384) },
    ],
    ['one long body', { request_body: 'é'.repeat(500_000) }],
    ['half of a character where it is cut', { request_body: `a${'😀'.repeat(100_000)}` }],
    [
      'thousands of headers',
      { request_headers: Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`x-${n}`, 'v'])) },
    ],
  ])('shortens texts and keeps ids in a result with %s', (_, fields) => {
    const cut = boundedOutput({ request: requestOf(fields), untrusted: true }, null);
    expect(cut).toMatchObject({ request: { id: 'req_1', method: 'POST' }, truncated: true, untrusted: true });
    expect(bytesOf(cut)).toBeLessThanOrEqual(MAX);
    expect(bytesOf(cut)).toBeGreaterThan(MAX / 8);
    expect(JSON.stringify(cut)).not.toMatch(/\\ud[89a-f]/);
  });

  it('holds for a single oversized entry, and for a deep list', () => {
    expect(bytesOf(boundedOutput({ note: 'x'.repeat(600_000) }, null))).toBeLessThanOrEqual(MAX);
    const one = boundedOutput({ groups: [{ name: 'g', reason: 'x'.repeat(600_000) }] }, 'groups');
    expect(bytesOf(one)).toBeLessThanOrEqual(MAX);
    const members = Array.from({ length: 30_000 }, (_, id) => ({ id, reason: 'down' }));
    const deep = boundedOutput(
      {
        groups: [
          { name: 'g', members },
          { name: 'h', members },
        ],
      },
      'groups',
    );
    expect(bytesOf(deep)).toBeLessThanOrEqual(MAX);
    expect(deep).toMatchObject({ groups: [{ name: 'g' }], truncated: true });
  });
});

describe('a failed tool call', () => {
  it('is one line with the code, the message and the next step', () => {
    const { isError, content } = failedResult(
      new Fault('MCP_TARGET_NOT_ALLOWED', { target: '10.0.0.1:80', allowed: '127.0.0.1:1024-65535' }),
    );
    expect(isError).toBe(true);
    expect(content).toEqual([
      {
        type: 'text',
        text: 'MCP_TARGET_NOT_ALLOWED: an agent cannot publish 10.0.0.1:80 on this computer (allowed: 127.0.0.1:1024-65535) Next: Ask the person who runs this MCP server. To allow the target, add `- "10.0.0.1:80"` to `mcp.allow` in config.yml, or start with --allow 10.0.0.1:80.',
      },
    ]);
  });

  it('from another process is shortened, and its hint has no placeholders', () => {
    const { content } = failedResult(Fault.fromWire('CLIENT_NO_ANSWER', 'x'.repeat(100_000)));
    expect(content[0]?.text.length).toBeLessThan(1200);
    expect(content[0]?.text).not.toContain('{pid}');
  });
});
