// docs/limits.md is the limits of all packages in another form. UPDATE_DOCS=1 npx vitest run tests/repo/limits-doc.test.ts writes it anew.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CLI_LIMITS } from '../../apps/cli/src/limits.ts';
import { CERTIFICATE_LIMITS } from '../../apps/edge/src/certificate-limits.ts';
import { EDGE_LIMITS } from '../../apps/edge/src/limits.ts';
import { NAME_LIMITS } from '../../apps/edge/src/name-limits.ts';
import { POLICY_LIMITS } from '../../apps/edge/src/policy-limits.ts';
import { LIMITS as PLATFORM_LIMITS } from '../../apps/platform/src/limits.ts';
import { DNS_LIMITS } from '../../packages/certificates/src/dns/dns-limits.ts';
import { CERTIFICATES_LIMITS } from '../../packages/certificates/src/limits.ts';
import { CLIENT_LIMITS } from '../../packages/client/src/limits.ts';
import { HTTP1_LIMITS } from '../../packages/http1/src/limits.ts';
import { BRIDGE_LIMITS } from '../../packages/mcp/src/bridge/bridge-limits.ts';
import { MCP_TOOL_LIMITS } from '../../packages/mcp/src/tools/tool-limits.ts';
import { MUX_LIMITS } from '../../packages/mux/src/limits.ts';
import { PEER_LIMITS } from '../../packages/peer/src/limits.ts';
import { POLICY_BOUNDS } from '../../packages/policy/src/limits.ts';
import { WIRE_LIMITS } from '../../packages/protocol/src/limits.ts';
import { RULE_LIMITS } from '../../packages/rules/src/limits.ts';
import { RUNTIME_LIMITS } from '../../packages/runtime/src/limits.ts';

const ROOT = new URL('../../', import.meta.url);
const PAGE = new URL('docs/limits.md', ROOT);

interface Limit {
  readonly name: string;
  readonly value: number;
  readonly why: string;
}

interface Section {
  readonly title: string;
  readonly limits: Limit[];
}

/** A comment between dashes begins a section; the comment above a limit says why it has its value. */
const sectionsOf = (file: string, values: Readonly<Record<string, number>>): Section[] => {
  const sections: Section[] = [];
  let why = '';
  for (const line of readFileSync(new URL(file, ROOT), 'utf8').split('\n')) {
    const heading = /^ {2}\/\/ --- (.+) ---$/.exec(line)?.[1];
    if (heading !== undefined) sections.push({ title: heading[0]?.toUpperCase() + heading.slice(1), limits: [] });
    why = /^ {2}\/\*\* (.+?)\.? \*\/$/.exec(line)?.[1] ?? why;
    const name = /^ {2}([A-Z][A-Z0-9_]+): /.exec(line)?.[1];
    if (name === undefined) continue;
    sections.at(-1)?.limits.push({ name, value: values[name] ?? Number.NaN, why });
    why = '';
  }
  return sections;
};

/** Without those that it takes over from another file, which is a part by itself. */
const OWN_EDGE_LIMITS = Object.fromEntries(
  Object.entries(EDGE_LIMITS).filter(
    ([name]) => ![POLICY_LIMITS, NAME_LIMITS, CERTIFICATE_LIMITS].some((part) => name in part),
  ),
);

const PARTS = [
  { title: 'The wire', file: 'packages/protocol/src/limits.ts', values: WIRE_LIMITS },
  { title: 'Sessions and streams', file: 'packages/mux/src/limits.ts', values: MUX_LIMITS },
  { title: 'Messages of HTTP/1.1', file: 'packages/http1/src/limits.ts', values: HTTP1_LIMITS },
  { title: 'Policies', file: 'packages/policy/src/limits.ts', values: POLICY_BOUNDS },
  { title: 'Rules that edge, platform and client share', file: 'packages/rules/src/limits.ts', values: RULE_LIMITS },
  { title: 'Requests to strangers', file: 'packages/runtime/src/limits.ts', values: RUNTIME_LIMITS },
  { title: 'The edge', file: 'apps/edge/src/limits.ts', values: OWN_EDGE_LIMITS },
  { title: 'Names at the edge', file: 'apps/edge/src/name-limits.ts', values: NAME_LIMITS },
  { title: 'Certificates at the edge', file: 'apps/edge/src/certificate-limits.ts', values: CERTIFICATE_LIMITS },
  { title: 'Policies at the edge', file: 'apps/edge/src/policy-limits.ts', values: POLICY_LIMITS },
  { title: 'The platform', file: 'apps/platform/src/limits.ts', values: PLATFORM_LIMITS },
  { title: 'Certificates and domains', file: 'packages/certificates/src/limits.ts', values: CERTIFICATES_LIMITS },
  { title: 'Peers', file: 'packages/peer/src/limits.ts', values: PEER_LIMITS },
  { title: 'The client', file: 'packages/client/src/limits.ts', values: CLIENT_LIMITS },
  { title: 'Look-ups and challenges in DNS', file: 'packages/certificates/src/dns/dns-limits.ts', values: DNS_LIMITS },
  { title: 'The bridge to an MCP server', file: 'packages/mcp/src/bridge/bridge-limits.ts', values: BRIDGE_LIMITS },
  { title: 'Tools of models', file: 'packages/mcp/src/tools/tool-limits.ts', values: MCP_TOOL_LIMITS },
  { title: 'The command line', file: 'apps/cli/src/limits.ts', values: CLI_LIMITS },
].map((part) => ({ ...part, sections: sectionsOf(part.file, part.values) }));

const LIMITS = PARTS.flatMap(({ sections }) => sections).flatMap(({ limits }) => limits);

const INTRODUCTION = `# Limits

Every bound of the wire, of an edge, of the platform and of a client, by the name it has in the code. A buffer, a table or a wait that
is not here has no business in the code. What an operator may set is in \`[limits]\` of \`server.toml\`; these here are fixed.
A limit that a peer runs into is answered with a code of [errors.md](errors.md); how the wire behaves at each is in
[protocol.md](protocol.md).

This page is written from the \`limits.ts\` of each package; a test keeps them equal
(\`UPDATE_DOCS=1 npx vitest run tests/repo/limits-doc.test.ts\`).
`;

const inSteps = (value: number, steps: readonly (readonly [number, string])[]): string => {
  const [size, unit] = steps.find(([step]) => value >= step && value % step === 0) ?? [1, steps.at(-1)?.[1] ?? ''];
  return `${value / size} ${unit}`;
};

const readable = ({ name, value }: Limit): string => {
  if (name.endsWith('_BYTES'))
    return inSteps(value, [
      [2 ** 30, 'GiB'],
      [2 ** 20, 'MiB'],
      [1024, 'KiB'],
      [1, 'bytes'],
    ]);
  if (name.endsWith('_MS'))
    return inSteps(value, [
      [3_600_000, 'h'],
      [60_000, 'min'],
      [1000, 's'],
      [1, 'ms'],
    ]);
  if (name.endsWith('_SHARE')) return `${value * 100} %`;
  return name.endsWith('_CHARS') ? `${value} characters` : '';
};

const render = (): string => {
  const lines = [INTRODUCTION];
  for (const { title, file, sections } of PARTS) {
    lines.push(`## ${title}`, '', `\`${file}\``, '');
    for (const { title: heading, limits } of sections) {
      lines.push(`### ${heading}`, '', '| Name | Value | That is | Why |', '|---|---|---|---|');
      for (const limit of limits)
        lines.push(`| \`${limit.name}\` | ${limit.value} | ${readable(limit)} | ${limit.why} |`);
      lines.push('');
    }
  }
  return lines.join('\n');
};

if (process.env['UPDATE_DOCS']) writeFileSync(PAGE, render());

describe('docs/limits.md', () => {
  it('lists every limit once', () => {
    const names = PARTS.flatMap(({ values }) => Object.keys(values));
    expect(LIMITS.map(({ name }) => name).toSorted()).toEqual(names.toSorted());
    expect(new Set(names).size).toBe(names.length);
  });

  it('says what the code says, to the letter', () => {
    expect(readFileSync(PAGE, 'utf8'), 'UPDATE_DOCS=1 npx vitest run tests/repo/limits-doc.test.ts').toBe(render());
  });

  it.each(LIMITS)('$name has a value and a reason', ({ value, why }) => {
    expect(value).toBeGreaterThan(0);
    expect(why.length).toBeGreaterThan(10);
    expect(why).not.toMatch(/\.$/);
  });
});

describe('limits that lean on each other', () => {
  it('two pings fit into the time until a peer is dead, on both kinds of connection', () => {
    expect(WIRE_LIMITS.CONTROL_DEAD_AFTER_MS).toBeGreaterThan(2 * WIRE_LIMITS.CONTROL_PING_INTERVAL_MS);
    expect(MUX_LIMITS.CARRIER_DEAD_AFTER_MS).toBeGreaterThan(2 * MUX_LIMITS.CARRIER_PING_INTERVAL_MS);
  });

  it('the client says why a local dial failed before the edge gives up', () => {
    expect(MUX_LIMITS.STREAM_OPEN_TIMEOUT_MS).toBeGreaterThan(CLIENT_LIMITS.LOCAL_DIAL_TIMEOUT_MS);
  });

  it('windows: floor, first, largest; one frame of DATA fits a first window and a 24-bit length', () => {
    expect(MUX_LIMITS.STREAM_WINDOW_FLOOR_BYTES).toBeLessThanOrEqual(MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES);
    expect(MUX_LIMITS.STREAM_WINDOW_INITIAL_BYTES).toBeLessThanOrEqual(WIRE_LIMITS.STREAM_WINDOW_MAX_BYTES);
    expect(WIRE_LIMITS.FRAME_DATA_MAX_BYTES).toBeLessThan(2 ** 24);
  });
});
