// All tests of the folder on one server.
import { afterAll, beforeAll, describe } from 'vitest';
import { commandRows } from './commands.rows.ts';
import { McpHarness } from './mcp-harness.fixture.ts';
import { oauthRows } from './oauth.rows.ts';
import { platformRows } from './platform.rows.ts';
import { sdkRows } from './sdk.rows.ts';
import { toolRows } from './tools.rows.ts';

const harness = new McpHarness();
beforeAll(() => harness.begin());
afterAll(() => harness.close());

// At once, because most of them wait for something. Each has accounts of its own.
describe.concurrent('everything', () => {
  platformRows(harness);
  toolRows(harness);
  oauthRows(harness);
  sdkRows(harness);
  commandRows(harness);
});
