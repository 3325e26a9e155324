import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { OPTION_KEYS, optionOf } from '@tunnel/tunnel-spec';
import { describe, expect, test } from 'vitest';
import type * as z from 'zod';
import { clientFileSchema } from './client/client-config.ts';
import { valueAt } from './layers/layer.ts';
import { valueKeys } from './layers/schema-walk.ts';
import { serverFileSchema } from './server/server-schema.ts';

const DOC = readFileSync(join(import.meta.dirname, '../../../docs/configuration.md'), 'utf8');
const [, afterServer = ''] = DOC.split('\n## server.toml\n');
const [serverPart = '', clientPart = ''] = afterServer.split('\n## config.yml\n');

/** Returns the default of each key, from every row of every table. */
const rowsOf = (part: string): Map<string, string> =>
  new Map(
    [...part.matchAll(/^\| `([^`]+)` +\| .+? +\| (`[^`]*`|none|required) +\| /gm)].map(([, key = '', value = '']) => [
      key,
      value,
    ]),
  );

const KINDS = [
  {
    name: 'server.toml',
    rows: rowsOf(serverPart),
    schema: serverFileSchema as z.ZodType,
    // List entries and user-defined names have no default to inspect, so the example has one entry of each.
    example: { platform: { plans: { '<name>': {} } } },
    required: [
      ...['auth.keys[].account', 'auth.keys[].sha256'],
      ...['policy.login[].name', 'policy.login[].issuer', 'policy.login[].client_id'],
    ],
  },
  {
    name: 'config.yml',
    rows: rowsOf(clientPart),
    schema: clientFileSchema as z.ZodType,
    example: { tunnels: { '<name>': { proto: 'tcp', local_port: 1, files: { dir: 'd' }, health_check: {} } } },
    required: ['tunnels.<name>.proto', 'tunnels.<name>.local_port', 'tunnels.<name>.files.dir'],
  },
];

/** Plan names are stricter than the placeholder `<name>`, so the placeholder is inserted after parsing. */
const defaultsOf = (schema: z.ZodType, example: object): unknown => {
  const text = JSON.stringify(example).replaceAll('<name>', 'name');
  const parsed = JSON.stringify(schema.parse(JSON.parse(text)));
  return JSON.parse(parsed.replaceAll('"name":{', '"<name>":{').replaceAll('"[secret]"', '""'));
};

describe.each(KINDS)('docs/configuration.md on $name', ({ rows, schema, example, required }) => {
  const known = valueKeys(schema).map((key) => key.replaceAll('.*', '.<name>'));

  test('lists every key, and no other key', () => {
    expect([...rows.keys()].sort()).toEqual(known.sort());
  });

  test('has the default of every key', () => {
    const defaults = defaultsOf(schema, example);
    for (const [key, said] of rows) {
      const value = valueAt(defaults, key.split('.'));
      const byDefault = value === undefined ? 'none' : `\`${JSON.stringify(value)}\``;
      expect(`${key}: ${said}`).toBe(`${key}: ${required.includes(key) ? 'required' : byDefault}`);
    }
  });
});

/** Returns the columns "Type" and "Meaning" of each row. */
const wordsOf = (part: string): Map<string, string> =>
  new Map(
    [...part.matchAll(/^\| `([^`]+)` +\| (.+?) +\| (?:`[^`]*`|none|required) +\| (.+?) +\|$/gm)].map(
      ([, key = '', type, meaning]) => [key, `${type} | ${meaning}`],
    ),
  );

test('docs/configuration.md has the texts of the option table', () => {
  const said = wordsOf(clientPart);
  for (const key of OPTION_KEYS) {
    const { docs, fields = {} } = optionOf(key);
    const rows = docs === undefined ? Object.entries(fields) : [['', { docs }] as const];
    for (const [field, { docs: words }] of rows) {
      const path = `tunnels.<name>.${key}${field === '' ? '' : `.${field}`}`;
      expect(`${path}: ${said.get(path)}`).toBe(`${path}: ${words.type} | ${words.meaning}`);
    }
  }
});
