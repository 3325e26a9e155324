import { Fault } from '@tunnel/errors';
import { describe, expect, it } from 'vitest';
import { misuse, problemLines } from './problem-report.ts';

const inUse = (values = {}): string[] =>
  problemLines(Fault.fromWire('TUNNEL_SUBDOMAIN_IN_USE', "subdomain 'shop' is already in use", values));

it('the error for a name held by your second tunnel shows the tunnel, the computer and the solution', () => {
  expect(inUse({ held_by: 'web', held_by_client: 'laptop' })).toEqual([
    "tunnel: subdomain 'shop' is already in use",
    "  Your tunnel 'web' on laptop uses it. To close that tunnel: `tunnel close shop`. To balance visitors between both tunnels, start both with --group (see `tunnel group-key`).",
  ]);
  expect(inUse({ held_by: 'a\u001b[2Jb' })[1]).toMatch(/^ {2}Your tunnel 'a \[2Jb' uses it\. To close/);
});

it('the error for a name in use without a known holder suggests another name', () => {
  expect(inUse()).toEqual([
    "tunnel: subdomain 'shop' is already in use",
    '  Choose another subdomain, or let the edge assign a name.',
  ]);
});

it('the error for a p2p name held by your second tunnel does not suggest groups', () => {
  const fault = Fault.fromWire('TUNNEL_P2P_NAME_IN_USE', "p2p name 'db' is already in use", { held_by: 'office' });
  expect(problemLines(fault)[1]).toBe("  Your tunnel 'office' uses it. To close that tunnel: `tunnel close db`.");
});

describe('with a known platform', () => {
  const PLATFORM = 'https://tunnels.example.com/';

  it('an error ends with the page and heading that explain the error', () => {
    const fault = Fault.fromWire('TUNNEL_SUBDOMAIN_IN_USE', "subdomain 'shop' is already in use");
    expect(problemLines(fault, { platformUrl: PLATFORM }).at(-1)).toBe(
      '  Docs: https://tunnels.example.com/docs/guide/domains#reserve-a-name-or-a-port',
    );
    expect(problemLines(new Fault('P2P_AWAY'), { platformUrl: PLATFORM }).at(-1)).toMatch(
      /guide\/p2p#connection-errors$/,
    );
  });

  it('an error without a page of its own leads to its row in the list of errors', () => {
    expect(problemLines(new Fault('EDGE_SHUTTING_DOWN'), { platformUrl: PLATFORM }).at(-1)).toBe(
      '  Docs: https://tunnels.example.com/docs/guide/errors#EDGE_SHUTTING_DOWN',
    );
  });

  it('a hint that names a page has the link, and no second link follows', () => {
    const lines = problemLines(new Fault('POLICY_ABSENT'), { platformUrl: PLATFORM });
    expect(lines.join('\n')).toContain('(https://tunnels.example.com/docs/guide/policy)');
    expect(lines.join('\n')).not.toContain('Docs: ');
    expect(problemLines(new Fault('POLICY_ABSENT')).join('\n')).toContain('(docs/policy.md)');
  });

  it('a mistyped command leads to its help, which has the link', () => {
    expect(problemLines(misuse('unknown thing'), { path: 'tunnel http', platformUrl: PLATFORM })).toEqual([
      'tunnel: unknown thing',
      '  See `tunnel http --help`.',
    ]);
  });
});
