// Checks that every row has a test and that README.md lists the test files.
import { testRowMap } from '../row-map.fixture.ts';
import { ROWS } from './rows.fixture.ts';

testRowMap({
  at: import.meta.url,
  rows: ROWS,
  intro: [
    '# MCP and OAuth, row by row',
    '',
    'Each test is named after its row: `npx vitest run tests/conformance/mcp -t "OAuth, row 3"`.',
    'Rows are listed in `rows.fixture.ts`; all share one server (`mcp.test.ts`).',
    'What needs another clock or configuration is tested beside the code: 20 open calls, `enabled = false`, attempts a minute, lifetimes, private addresses.',
  ],
});
