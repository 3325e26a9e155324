import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { problemLines } from './problem-report.ts';

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
