// The table of tools in docs/mcp.md matches the tools in the code.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { TOOLS } from './tool-facts.ts';
import { TOOL_BY_NAME } from './tools/all-tools.ts';

const page = readFileSync(new URL('../../../../docs/mcp.md', import.meta.url), 'utf8');

const yes = (is: boolean): string => (is ? 'yes' : 'no');

const argumentsOf = (schema: Readonly<Record<string, unknown>>): string => {
  const { properties = {}, required = [] } = schema as { properties?: object; required?: string[] };
  return Object.keys(properties)
    .map((name) => `\`${name}${required.includes(name) ? '' : '?'}\``)
    .join(', ');
};

it('docs/mcp.md has a row for every tool, and no other row', () => {
  const rows = [...TOOL_BY_NAME.values()].map(({ name, listing }) => {
    const facts = TOOLS.get(name);
    const cells = [
      `\`${name}\``,
      argumentsOf(listing.inputSchema),
      yes(facts?.readOnly ?? false),
      yes(facts?.destructive ?? false),
      facts?.scope ? `\`${facts.scope}\`` : '',
    ];
    return `|${cells.map((cell) => (cell === '' ? ' ' : ` ${cell} `)).join('|')}|`;
  });
  const table = page.slice(page.indexOf('| Tool | Takes |')).split('\n\n')[0]?.split('\n').slice(2);
  expect(table).toEqual(rows);
});
