import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import {
  type EntryFields,
  isRetarget,
  planReload,
  type RunningEntry,
  reloadOutcome,
  restartRequired,
  type WantedEntry,
} from './reload.ts';

const site: EntryFields = { protocol: 'http', local_host: '127.0.0.1', local_port: 3000, host_header: 'keep' };

describe('retargeting a tunnel without reopening it', () => {
  it.each<[string, EntryFields, boolean]>([
    ['another port', { ...site, local_port: 3001 }, true],
    ['another host', { ...site, local_host: 'localhost' }, true],
    ['a socket', { protocol: 'http', host_header: 'keep', local_socket: '/run/app.sock' }, true],
    ['a folder', { protocol: 'http', host_header: 'keep', files: { dir: '/srv', spa: false } }, true],
    ['certificate verification', { ...site, local_tls_verify: false }, true],
    ['the protocol of the local service', { ...site, local_protocol: 'h2c' }, true],
    ['nothing', { ...site }, true],
    ['an undefined key', { ...site, subdomain: undefined }, true],
    ['another name', { ...site, subdomain: 'app' }, false],
    ['another protocol', { ...site, protocol: 'tcp' }, false],
    ['the Host header', { ...site, host_header: 'rewrite' }, false],
    ['a port and a name', { ...site, local_port: 3001, subdomain: 'app' }, false],
    ['an unknown key', { ...site, somethingNew: 1 }, false],
  ])('is decided by the change of the tunnel: %s', (_what, after, expected) => {
    expect(isRetarget(site, after)).toBe(expected);
  });

  it('is not possible while the edge writes the local address into requests', () => {
    const before = { ...site, host_header: 'rewrite' };
    expect(isRetarget(before, { ...before, local_port: 3001 })).toBe(false);
    expect(isRetarget(before, { ...before, health_check: {} })).toBe(true);
  });

  it.each<[string, unknown, unknown, boolean]>([
    ['its times', { type: 'tcp', interval_secs: 10 }, { type: 'tcp', interval_secs: 5 }, true],
    ['its path', { type: 'http', path: '/a' }, { type: 'http', path: '/b' }, true],
    ['its type', { type: 'tcp' }, { type: 'http', path: '/' }, false],
    ['its alert', { type: 'tcp', alert_webhook: 'http://a/' }, { type: 'tcp', alert_webhook: 'http://b/' }, false],
    ['added', undefined, { type: 'tcp' }, false],
    ['removed', { type: 'tcp' }, undefined, false],
  ])('is decided by the change of the health check: %s', (_what, before, after, expected) => {
    expect(isRetarget({ ...site, health_check: before }, { ...site, health_check: after })).toBe(expected);
  });
});

test('settings that need a restart are named, compared with the settings at the start', () => {
  const started = { server: 'a:1', tls: undefined, auth_token: 'hash1', watch: false, tunnels: {} };
  expect(restartRequired(started, { ...started, watch: true, api_url: 'x', tunnels: { a: 1 } })).toEqual([]);
  expect(restartRequired(started, { ...started, auth_token: 'hash2', proxy: 'none', server: 'b:1' })).toEqual([
    'server',
    'proxy',
    'auth_token',
  ]);
});

test('a reload reports the number of unchanged tunnels, and the names of the others', () => {
  const plan = { keep: ['a', 'b'], retarget: ['c'], update: ['g'], reopen: ['d'], open: ['e'], close: ['f'] };
  expect(reloadOutcome(plan, ['server'])).toEqual({
    added: ['e'],
    removed: ['f'],
    changed: ['c', 'g', 'd'],
    unchanged: 2,
    restart_required: ['server'],
  });
});

// ---- random configurations, compared with naive rules ----

const fields = fc.record(
  {
    protocol: fc.constantFrom('http', 'tcp'),
    local_port: fc.constantFrom(1, 2),
    subdomain: fc.constantFrom('a', 'b'),
    host_header: fc.constantFrom('keep', 'rewrite'),
    files: fc.record({ dir: fc.constantFrom('/a', '/b') }),
    health_check: fc.record({ type: fc.constantFrom('tcp', 'http'), interval_secs: fc.constantFrom(1, 2) }),
    policy: fc.constantFrom('hash1', 'hash2'),
    policy_revision: fc.constantFrom(0, 1),
    services: fc.record({ api: fc.constantFrom('127.0.0.1:1', '127.0.0.1:2') }),
  },
  { requiredKeys: ['protocol'] },
);
const wanted: fc.Arbitrary<WantedEntry> = fc.record({
  name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  kind: fc.constantFrom('tunnel', 'tunnel', 'tunnel', 'peer'),
  fields,
});
const running: fc.Arbitrary<RunningEntry> = fc
  .tuple(wanted, fc.boolean())
  .map(([entry, isOfFile]) => ({ ...entry, isOfFile }));
const byName = { selector: ({ name }: WantedEntry) => name };

const text = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

/**
 * Returns the parts of an entry that the edge knows, as texts: a naive way to decide whether the tunnel or its policy must be sent again.
 */
const toldToEdge = ({ kind, fields: entry }: WantedEntry): { tunnel: string; policy: string } => {
  const { local_port, files, health_check, policy, policy_revision, services, ...rest } = entry as Record<
    string,
    unknown
  > & { health_check?: { type: string } };
  const address = entry['host_header'] === 'rewrite' ? { local_port, files } : {};
  return {
    tunnel: text({ kind, ...rest, ...address, probe: health_check?.type }),
    policy: text({ policy, policy_revision, services }),
  };
};

const naive = (before: readonly RunningEntry[], after: readonly WantedEntry[]): Record<string, string> => {
  const steps: Record<string, string> = {};
  for (const name of new Set([...before, ...after].map((entry) => entry.name))) {
    const old = before.find((entry) => entry.name === name);
    const now = after.find((entry) => entry.name === name);
    if (old === undefined) steps[name] = 'open';
    else if (now === undefined) steps[name] = old.isOfFile ? 'close' : 'left alone';
    else if (text([old.kind, old.fields]) === text([now.kind, now.fields])) steps[name] = 'keep';
    else if (now.kind !== 'tunnel' || toldToEdge(old).tunnel !== toldToEdge(now).tunnel) steps[name] = 'reopen';
    else steps[name] = toldToEdge(old).policy === toldToEdge(now).policy ? 'retarget' : 'update';
  }
  return steps;
};

test('for any two configurations, each tunnel gets exactly one step, the same as in a naive implementation', () => {
  fc.assert(
    fc.property(fc.uniqueArray(running, byName), fc.uniqueArray(wanted, byName), (before, after) => {
      const plan = planReload(before, after);
      const found = Object.entries(plan).flatMap(([step, names]) =>
        (names as readonly string[]).map((name): [string, string] => [name, step]),
      );
      const expected = Object.entries(naive(before, after)).filter(([, step]) => step !== 'left alone');
      expect(new Map(found)).toEqual(new Map(expected));
      expect(found).toHaveLength(expected.length);
    }),
    { numRuns: 500 },
  );
});

test('a reload of the running configuration changes nothing', () => {
  fc.assert(
    fc.property(fc.uniqueArray(running, byName), (entries) => {
      const plan = planReload(entries, structuredClone(entries));
      const keep = entries.map(({ name }) => name);
      expect(plan).toEqual({ keep, retarget: [], update: [], reopen: [], open: [], close: [] });
    }),
  );
});
