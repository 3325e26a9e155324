// Runs all tests of the folder on the server that the platform tests use.
import { beforeAll, describe } from 'vitest';
import { onSharedPlatform } from '../platform/platform-harness.fixture.ts';
import { commandRows } from './commands.rows.ts';
import { McpHarness } from './mcp-harness.fixture.ts';
import { oauthRows } from './oauth.rows.ts';
import { platformRows } from './platform.rows.ts';
import { sdkRows } from './sdk.rows.ts';
import { toolRows } from './tools.rows.ts';

const harness = onSharedPlatform(new McpHarness());
beforeAll(() => harness.begin());

// The tests run at the same time, because most of them wait for events. Each test has separate accounts.
describe.concurrent('MCP on the shared platform', () => {
  platformRows(harness);
  toolRows(harness);
  oauthRows(harness);
  sdkRows(harness);
  commandRows(harness);
});
