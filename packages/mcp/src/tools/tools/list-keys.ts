// Tool list_keys: lists the labels of the account's API keys. Neither keys nor their hashes are ever shown.
import { apiToken } from '@tunnel/contract';
import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const listKeys = defineTool({
  name: 'list_keys',
  title: 'List API keys',
  description:
    "Lists the account's API keys by label, with the dates of creation and last use and the number of tunnels opened. Use it to find unused keys. Read-only and free. The keys are never shown, and no tool creates or revokes a key: the user does so in the dashboard.",
  input: z.strictObject({}),
  output: z.object({ keys: z.array(apiToken.omit({ token_hash: true, scope: true })) }),
  list: 'keys',
  run: async (host, _input, call) => ({ keys: [...(await host.listKeys(call))] }),
});
