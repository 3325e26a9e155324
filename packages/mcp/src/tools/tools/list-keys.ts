// list_keys: the API keys of the account by their labels. Neither a key nor its hash is ever shown.
import { apiToken } from '@tunnel/contract';
import * as z from 'zod';
import { defineTool } from '../tool.ts';

export const listKeys = defineTool({
  name: 'list_keys',
  title: 'List API keys',
  description:
    'Lists the API keys of this account by label: when each was made and last used, and how many tunnels were opened with it. It shows no key, and no tool makes or revokes one: the person does that in the dashboard. Reads only, costs nothing.',
  input: z.strictObject({}),
  output: z.object({ keys: z.array(apiToken.omit({ token_hash: true, scope: true })) }),
  list: 'keys',
  run: async (host, _input, call) => ({ keys: [...(await host.listKeys(call))] }),
});
