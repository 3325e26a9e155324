// Two stdio MCP servers to bridge, which offer the same: one written by hand that knows 2025-06-18 alone, and one on the SDK of 2026.
import { fileURLToPath } from 'node:url';
import type { ServerCommand } from './child-process.ts';

/** `polite`: what it does not know is an error · `strict`: it ends when it is asked anything before `initialize` · `silent`: it says nothing to that. */
export type Manners = 'polite' | 'strict' | 'silent';

const INSTRUCTIONS = 'Ask me anything.';

const TOOLS = `
const text = (text) => ({ content: [{ type: 'text', text }] });
const say = (line) => process.stderr.write(line + '\\n');
const object = (properties) => ({ type: 'object', properties });
const TOOLS = {
  big: object({ bytes: { type: 'number' } }),
  crash: object({}),
  echo: object({ text: { type: 'string' } }),
  grow: object({}),
  hang: object({}),
  steps: object({}),
  variable: object({ name: { type: 'string' } }),
};
const COMMON = {
  big: ({ bytes }) => text('x'.repeat(bytes)),
  crash: () => process.exit(3),
  echo: ({ text: words }) => ({ ...text(words), structuredContent: { text: words } }),
  variable: ({ name }) => text(process.env[name] ?? '(none)'),
};
say('started ' + process.pid);
`;

const HAND_WRITTEN = `
import { createInterface } from 'node:readline';
${TOOLS}
const manners = process.argv[1];
let isReady = false;
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const fail = (code, message) => { throw Object.assign(new Error(message), { code }); };
const STOPPED = new Map();
const METHODS = {
  initialize: () => {
    isReady = true;
    return {
      protocolVersion: '2025-06-18',
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, prompts: {}, completions: {}, logging: {} },
      serverInfo: { name: 'by-hand', version: '1.2.3' },
      instructions: ${JSON.stringify(INSTRUCTIONS)},
    };
  },
  ping: () => ({}),
  // In pages of two.
  'tools/list': ({ cursor = '0' }) => {
    const tools = Object.entries(TOOLS).map(([name, inputSchema]) => ({ name, inputSchema }));
    const from = Number(cursor);
    return { tools: tools.slice(from, from + 2), ...(from + 2 < tools.length ? { nextCursor: String(from + 2) } : {}) };
  },
  'tools/call': ({ name, arguments: given = {}, _meta }, id) => {
    if (!(name in TOOLS)) fail(-32602, 'Tool ' + name + ' not found');
    if (name === 'hang') return new Promise((resolve, reject) => {
      say('hanging');
      STOPPED.set(id, () => { say('cancelled'); reject(null); });
    });
    if (name === 'grow') {
      TOOLS.grown = object({});
      send({ method: 'notifications/tools/list_changed' });
      return text('grown');
    }
    if (name === 'steps') {
      for (let step = 1; step <= 3; step += 1) {
        send({ method: 'notifications/progress', params: { progressToken: _meta?.progressToken, progress: step, total: 3, message: 'step ' + step } });
      }
      return text('token ' + JSON.stringify(_meta?.progressToken ?? null));
    }
    return COMMON[name](given);
  },
  'resources/list': () => ({ resources: [{ uri: 'test://one', name: 'one' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'test://{name}', name: 'any' }] }),
  'resources/read': ({ uri }) => ({ contents: [{ uri, text: 'this is ' + uri }] }),
  'prompts/list': () => ({ prompts: [{ name: 'greet', arguments: [{ name: 'name', required: true }] }] }),
  'prompts/get': ({ arguments: { name } }) => ({ messages: [{ role: 'user', content: { type: 'text', text: 'Greet ' + name } }] }),
  'completion/complete': ({ argument: { value } }) => ({ completion: { values: ['ada', 'alan'].filter((name) => name.startsWith(value)) } }),
};
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  if (method === 'notifications/cancelled') return STOPPED.get(params.requestId)?.();
  if (id === undefined) return;
  if (!isReady && method !== 'initialize') {
    if (manners === 'strict') process.exit(1);
    if (manners === 'silent') return;
  }
  try {
    send({ id, result: await (METHODS[method] ?? (() => fail(-32601, 'Method not found')))(params, id) });
  } catch (error) {
    if (error !== null) send({ id, error: { code: error.code ?? -32603, message: error.message } });
  }
}).on('close', () => process.exit(0));
`;

const ON_SDK = `
import { completable, fromJsonSchema, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';
${TOOLS}
let hasGrown = false;
serveStdio(() => {
  const server = new McpServer({ name: 'on-sdk', version: '1.2.3' }, { instructions: ${JSON.stringify(INSTRUCTIONS)} });
  const SPECIAL = {
    hang: (_given, { mcpReq: { signal } }) => new Promise((resolve, reject) => {
      say('hanging');
      signal.addEventListener('abort', () => { say('cancelled'); reject(signal.reason); });
    }),
    grow: () => {
      hasGrown = true;
      server.registerTool('grown', { inputSchema: fromJsonSchema(object({})) }, () => text('as you see'));
      return text('grown');
    },
    steps: async (_given, { mcpReq: { _meta, notify } }) => {
      const progressToken = _meta?.progressToken;
      for (let step = 1; step <= 3 && progressToken !== undefined; step += 1) {
        await notify({ method: 'notifications/progress', params: { progressToken, progress: step, total: 3, message: 'step ' + step } });
      }
      return text('token ' + JSON.stringify(progressToken ?? null));
    },
  };
  for (const [name, schema] of Object.entries(TOOLS)) {
    server.registerTool(name, { inputSchema: fromJsonSchema(schema) }, SPECIAL[name] ?? COMMON[name]);
  }
  if (hasGrown) server.registerTool('grown', { inputSchema: fromJsonSchema(object({})) }, () => text('as you see'));
  const read = (uri) => ({ contents: [{ uri: String(uri), text: 'this is ' + uri }] });
  server.registerResource('one', 'test://one', {}, read);
  server.registerResource('any', new ResourceTemplate('test://{name}', { list: undefined }), {}, read);
  const name = completable(z.string(), (value) => ['ada', 'alan'].filter((known) => known.startsWith(value)));
  server.registerPrompt('greet', { argsSchema: z.object({ name }) }, ({ name }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: 'Greet ' + name } }],
  }));
  return server;
});
`;

/** What the scripts import is found from here. */
const HERE = fileURLToPath(new URL('..', import.meta.url));

const runs = (script: string, ...args: string[]): ServerCommand => ({
  command: process.execPath,
  args: ['--input-type=module', '-e', script, ...args],
  env: { ...process.env, GIVEN: 'to the server' },
  cwd: HERE,
});

export const handWrittenServer = (manners: Manners = 'polite'): ServerCommand => runs(HAND_WRITTEN, manners);
export const sdkServer = (): ServerCommand => runs(ON_SDK);

export const TOOL_NAMES = ['big', 'crash', 'echo', 'grow', 'hang', 'steps', 'variable'];
