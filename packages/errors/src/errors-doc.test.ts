// docs/errors.md is generated from the catalogue. UPDATE_DOCS=1 npx vitest run packages/errors regenerates the page.
import { readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CATALOGUE, type CatalogueEntry, ERROR_CODES, type ErrorCode } from './catalogue.ts';

const FILE = new URL('../../../docs/errors.md', import.meta.url);

/** Headings in the order of the catalogue. A code belongs to the first family with a matching prefix. */
const FAMILIES: readonly { readonly title: string; readonly prefixes: readonly string[] }[] = [
  { title: 'Configuration and start', prefixes: ['CONFIG', 'SERVER', 'BACKUP', 'RESTORE'] },
  { title: 'Certificates', prefixes: ['ACME', 'CERTIFICATE', 'CERTIFICATES', 'LOCAL_CA'] },
  { title: 'Keys and accounts', prefixes: ['AUTH', 'ACCOUNT', 'SIGN_UP', 'PASSWORD'] },
  { title: 'Control connection', prefixes: ['CONTROL', 'EDGE_SHUTTING', 'SESSION'] },
  { title: 'Carriers and streams', prefixes: ['CARRIER', 'STREAM'] },
  { title: 'Tunnels', prefixes: ['TUNNEL', 'NAMES', 'CONNECTIONS'] },
  { title: 'Custom domains and DNS', prefixes: ['DOMAIN', 'DNS'] },
  { title: 'Groups', prefixes: ['GROUP'] },
  { title: 'Policies', prefixes: ['POLICY'] },
  { title: 'Peer-to-peer tunnels', prefixes: ['P2P'] },
  { title: 'HTTP visitors', prefixes: ['LOCAL', 'HTTP', 'PLATFORM'] },
  { title: 'Edge REST API', prefixes: ['API', 'CAPTURE', 'INTERNAL'] },
  {
    title: 'Platform',
    prefixes: [
      'DATABASE',
      'LOGIN',
      'ACCESS',
      'REFRESH',
      'ORIGIN',
      'MAIL',
      'KEY',
      'RESERVATION',
      'OAUTH',
      'USER',
      'PLAN',
      'EDGE',
      'DOWNLOAD',
      'DOWNLOADS',
    ],
  },
  { title: 'Billing', prefixes: ['BILLING', 'SPEND', 'WEBHOOK', 'IDEMPOTENCY'] },
  { title: 'Client', prefixes: ['CLIENT'] },
  { title: 'MCP tools', prefixes: ['MCP'] },
];

const INTRODUCTION = `# Errors

Look up an error code here to find out what went wrong and what to do next. A code has the same meaning everywhere: in
REST responses, control messages, \`tunnel --json\` events and log lines. Codes never change; the wording of messages and
hints can. In the tables, \`{name}\` stands for a value.

- **HTTP** is the status code of an HTTP response with the error.
- **Retry** is *yes* if the same request can succeed later. The client retries after those errors and stops after the
  rest.

A newer server can send codes missing from this page. Treat an unknown code like \`INTERNAL\`, and show the message to the
user.

The tables are generated from \`packages/errors/src/catalogue.ts\` with \`UPDATE_DOCS=1 npx vitest run packages/errors\`.
`;

const familyOf = (code: ErrorCode): string | undefined =>
  FAMILIES.find(({ prefixes }) => prefixes.some((prefix) => `${code}_`.startsWith(`${prefix}_`)))?.title;

const rowOf = (code: ErrorCode): string => {
  const { status, retryable, text, next }: CatalogueEntry = CATALOGUE[code];
  return `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${cell(text)} | ${cell(next)} |`;
};

const cell = (text: string): string => text.replaceAll('|', '\\|');

const render = (): string => {
  const sections = FAMILIES.map(({ title }) => {
    const rows = ERROR_CODES.filter((code) => familyOf(code) === title).map(rowOf);
    return [`## ${title}\n`, '| Code | HTTP | Retry | Message | Hint |', '|---|---|---|---|---|', ...rows, ''].join(
      '\n',
    );
  });
  return `${INTRODUCTION}\n${sections.join('\n')}`;
};

if (process.env['UPDATE_DOCS']) writeFileSync(FILE, render());

describe('docs/errors.md', () => {
  const page = readFileSync(FILE, 'utf8');

  it('has a section for every code', () => {
    expect(ERROR_CODES.filter((code) => familyOf(code) === undefined)).toEqual([]);
  });

  it('lists every code of the catalogue', () => {
    expect(ERROR_CODES.filter((code) => !page.includes(`| \`${code}\` |`))).toEqual([]);
  });

  it('lists no removed code', () => {
    const listed = [...page.matchAll(/^\| `([A-Z0-9_]+)` \|/gm)].map((match) => match[1] ?? '');
    expect(listed.filter((code) => !(ERROR_CODES as string[]).includes(code))).toEqual([]);
  });

  it('equals the rendered catalogue exactly', () => {
    expect(page, 'UPDATE_DOCS=1 npx vitest run packages/errors').toBe(render());
  });
});
